import Domain
import JSON
import Relay
import World

/// Ask: `/login`, the start of another factor, and the cancellation of a challenge.
enum Ask {
    typealias P = Parameters

    static let routes = [
        Route(
            "login", "POST", "/login", "Opens a challenge for a user",
            Form(
                .website(login),
                [
                    P.token.optional, P.username.optional, P.request.optional, P.number.optional, P.ip.optional,
                    P.userAgent.optional, P.service.optional, P.action.optional, P.details.optional,
                    P.expiresIn.optional, P.factors.optional, P.minAssurance.optional, P.knownBrowser.optional,
                ], oneOf: ["token", "username"], claimsKeys: true,
                answers: [Answer(201, "The challenge is open", .openedLogin)],
                problems: [
                    .notFound: "there is no such user", .conflict: "token is of another user than username",
                    .limited: "too many logins of this user",
                ])),
        Route(
            "beginFactor", "POST", "/challenge/{challenge}/factor",
            "Begins a factor of a challenge now, or sends its code again",
            Form(
                .website(begin), [P.factor.required],
                answers: [Answer(202, "The factor begins", .begunFactor)],
                problems: [
                    .forbidden: "the challenge does not accept this factor, or the user has expired",
                    .codesLocked: "too many codes of the user were wrong",
                    .conflict: "the user has no usable factor of this kind",
                    .alreadyDecided: "the challenge has ended; login has its result",
                    .limited: "sent too recently or too often",
                ])),
        Route(
            "cancelChallenge", "DELETE", "/challenge/{challenge}", "Cancels a challenge",
            Form(.website(cancel), answers: [Answer(204, "The challenge has ended, now or before")])),
    ]

    @Sendable static func login(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let token = try call.userToken()
        let username = call[P.username]
        guard let subject = token.map({ Subject.token($0) }) ?? username.map({ .username($0) }) else {
            throw .notFound
        }
        let userAgent = call[P.userAgent]
        var request = LoginRequest(
            subject: subject, username: username, request: call[P.request], number: call[P.number],
            ip: call[P.ip], userAgent: userAgent?.shown, service: call[P.service], action: call[P.action],
            details: call[P.details] ?? [], expiresIn: call[P.expiresIn], factors: call[P.factors],
            minAssurance: call[P.minAssurance], isKnown: call[P.knownBrowser] == true)
        request.trace = call.trace
        request.isCounted = call.isCounted
        guard let unclaimed = call.unclaimed else {
            return .answer(answer(try await call.relay.login(request, by: website, as: call.operation), userAgent))
        }
        let kept = IdempotentAnswer(unclaimed) { opened in
            let answer = answer(opened, userAgent)
            return (answer.status, answer.body)
        }
        switch try await call.relay.login(request, by: website, as: call.operation, keeping: kept) {
        case .opened(let asked): return .kept(answer(asked, userAgent))
        case .unclaimed(let isCounted): return .unclaimed(isCounted: isCounted)
        }
    }

    private static func answer(_ asked: OpenedChallenge, _ userAgent: BrowserText?) -> APIResponse {
        var body: JSONObject = [
            "login": .string(asked.verified ? "verified" : "unverified"), "challenge": .string(asked.challenge.text),
        ]
        if let number = asked.number { body.set("number", .string(number)) }
        body.set("factor", .word(asked.factor))
        body.set("expires_at", .string(asked.expiresAt.rfc3339))
        if asked.areCodesLocked { body.set("codes", "locked") }
        body.set(missing: asked.missing)
        if let userAgent, userAgent.isChanged {
            body.set("adjusted", [P.userAgent.name: userAgent.shown.map { .string($0) } ?? .null])
        }
        return APIResponse(201, body)
    }

    @Sendable static func begin(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        guard let challenge = ChallengeID(try call.place("challenge")) else { throw .notFound }
        let begun = try await call.relay.begin(
            try call.required(P.factor), of: challenge, by: website, as: call.operation)
        var body: JSONObject = [
            "challenge": .string(challenge.text), "factor": .word(begun.factor), "state": .word(begun.state),
        ]
        if let reason = begun.reason { body.set("reason", .string(reason)) }
        return .answer(APIResponse(202, body))
    }

    @Sendable static func cancel(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        guard let challenge = ChallengeID(try call.place("challenge")) else { throw .notFound }
        try await call.relay.cancel(challenge, by: website)
        return .answer(.noContent)
    }
}
