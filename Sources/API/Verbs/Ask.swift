import Domain
import JSON
import Relay
import World

/// Ask: /login, and taking it back.
enum Ask {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/login", "Asks a user",
            Form(
                .website(login),
                [
                    P.token.optional, P.username.optional, P.request.optional, P.number.optional, P.ip.optional,
                    P.userAgent.optional, P.service.optional, P.action.optional, P.details.optional,
                    P.expiresIn.optional,
                ], oneOf: ["token", "username"],
                answers: [
                    (201, "login: verified or unverified, challenge, number?, factor, expires_at"),
                    (429, "this user was asked too often"),
                ])),
        Route(
            "DELETE", "/challenge/{challenge}", "Takes a challenge back",
            Form(.website(cancel), answers: [(204, "it has its end, this one or another")])),
    ]

    @Sendable static func login(_ call: Call, _ website: Website) async throws(Refusal) -> Verdict {
        let token: UserToken? = try call.id(P.token)
        let username = call[P.username]
        guard let subject = token.map({ Subject.token($0) }) ?? username.map({ .username($0) }) else {
            throw .notFound
        }
        let asked = try await call.relay.login(
            LoginRequest(
                subject: subject, username: username, request: call[P.request], number: call[P.number],
                ip: call[P.ip], userAgent: call[P.userAgent], service: call[P.service], action: call[P.action],
                details: call[P.details] ?? [], expiresIn: call[P.expiresIn]), by: website, as: call.operation)
        var body: JSONObject = [
            "login": .string(asked.verified ? "verified" : "unverified"), "challenge": .string(asked.challenge.text),
        ]
        if let number = asked.number { body.set("number", .string(number)) }
        body.set("factor", .word(asked.factor))
        body.set("expires_at", .string(asked.expiresAt.rfc3339))
        return .answer(Answer(201, body))
    }

    @Sendable static func cancel(_ call: Call, _ website: Website) async throws(Refusal) -> Verdict {
        guard let challenge = ChallengeID(try call.place("challenge")) else { throw .notFound }
        try await call.relay.cancel(challenge, by: website)
        return .answer(.noContent)
    }
}
