import Domain
import JSON
import Relay
import World

/// Enrol: the way back from a lost factor.
enum Recovery {
    typealias P = Parameters

    private static let unknown = "no open recovery has this token or handle"
    private static let otherState = "the recovery has another state"
    private static let state = Shape.recoveryState.named("RecoveryState")
    private static let ended = [Answer(204, "The recovery has ended")]
    private static let open = [Answer(200, "The open recoveries", .openRecoveries.named("OpenRecoveries"))]

    static let routes = [
        Route(
            "startRecovery", "POST", "/user/{username}/recovery", "Mails a link to a user who has lost a factor",
            Form(
                .website(start), [P.lost.required],
                answers: [
                    Answer(202, "The same whether there is such a user or not", .object(["expires_at": .time]))
                ],
                problems: [.forbidden: "the website has no recovery-url, or the relay no mail server"])),
        Route(
            "listUserRecoveries", "GET", "/user/{username}/recovery", "Returns the open recoveries of a user",
            Form(.website(ofUser), answers: open)),
        Route(
            "cancelUserRecovery", "DELETE", "/user/{username}/recovery/{recovery}",
            "Cancels a recovery for a user who is logged in", Form(.website(cancelByWebsite), answers: ended)),
        Route(
            "openRecovery", "POST", "/recovery", "Hands in the token of a link, which works once",
            Form(
                .website(open), [P.recoveryToken.required],
                answers: [
                    Answer(
                        201, "The recovery is open",
                        .recoveryState.adding(["handle": Shape.text("h4nd1e").about("Names the recovery from now on")])
                            .named("OpenedRecovery"))
                ],
                problems: [.notFound: unknown, .shownOnce: Enrol.shownOnce])),
        Route(
            "showRecovery", "POST", "/recovery/state", "Returns the state of a recovery",
            Form(
                .website(state), [P.handle.required], answers: [Answer(200, "The state", state)],
                problems: [.notFound: unknown])),
        Route(
            "proveRecovery", "POST", "/recovery/proof", "Gives the second proof of a recovery",
            Form(
                .website(prove), [P.handle.required, P.approval.optional],
                answers: [Answer(200, "The new state", state)],
                problems: [
                    .approvalRequired: "the challenge, and number?, of the proof",
                    .forbidden: "only an operator can prove it, or the approval is void",
                    .codesLocked: "the user has no phone that could prove it",
                    .conflict: otherState, .notFound: unknown,
                ])),
        Route(
            "askPhones", "POST", "/recovery/approval", "Asks the phones once more to end the wait",
            Form(
                .website(ask), [P.handle.required], answers: [Answer(200, "The new state", state)],
                problems: [
                    .forbidden: "no phone may decide", .conflict: otherState, .notFound: unknown,
                    .limited: "the phones were asked three times since the announcement",
                ])),
        Route(
            "finishRecovery", "POST", "/recovery/finish", "Creates the new factor of a recovery that is ready",
            Form(
                .website(finish),
                [
                    P.handle.required, P.seed.optional, P.counter.optional, P.codeDigits.optional,
                    P.algorithm.optional, P.period.optional,
                ],
                answers: [
                    Answer(201, "The app's secret, the token, or the activation of a phone", .recoveredFactor),
                    Answer(202, "The relay mails the activation code of a phone", .mailedActivation),
                ],
                problems: [
                    .forbidden: "the user is locked, frozen, disabled or expired",
                    .conflict: "the recovery is not ready yet, or has ended", .notFound: unknown,
                    .shownOnce: Enrol.shownOnce,
                ])),
        Route(
            "cancelRecoveryByToken", "POST", "/recovery/cancel", "Hands in the cancelling token of an announcement",
            Form(
                .website(cancelByToken), [P.recoveryToken.required], answers: ended, problems: [.notFound: unknown])),
        Route(
            "listRecoveries", "GET", "/recovery", "Returns the open recoveries of the phone's user",
            Form(.phone(ofPhone), answers: open)),
        Route(
            "cancelRecovery", "DELETE", "/recovery/{recovery}", "Cancels a recovery",
            Form(.phone(cancelByPhone), answers: ended)),
    ]

    @Sendable private static func start(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let expiresAt = try await call.relay.startRecovery(
            of: try call.required(P.lost), username: try Enrol.username(call), by: website, as: call.operation)
        return .answer(APIResponse(202, ["expires_at": .timestamp(expiresAt)]))
    }

    @Sendable private static func open(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let opened = try await call.relay.openRecovery(
            token: try call.required(P.recoveryToken), by: website, as: call.operation)
        var body = opened.state.json
        body.set("handle", .string(opened.handle))
        return .secret(body)
    }

    @Sendable private static func state(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        .answer(
            APIResponse(
                200, try await call.relay.recoveryState(handle: try call.required(P.handle), of: website).json))
    }

    @Sendable private static func prove(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let seen = try await call.relay.proveRecovery(
            handle: try call.required(P.handle), approval: call.approval, by: website, as: call.operation)
        return .answer(APIResponse(200, seen.json))
    }

    @Sendable private static func ask(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let seen = try await call.relay.askPhones(
            handle: try call.required(P.handle), by: website, as: call.operation)
        return .answer(APIResponse(200, seen.json))
    }

    @Sendable private static func finish(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let handle = try call.required(P.handle)
        switch try await call.relay.recoveredFactor(handle: handle, of: website) {
        case .hotp:
            guard let text = call[P.seed] else { throw .invalid([.missing("secret")]) }
            guard let secret = TokenSeed.secret(text) else { throw .broken }
            let token = try await call.relay.recoverHOTP(
                handle: handle, seed: TokenSeed(secret: secret, counter: Int64(call[P.counter] ?? 0)),
                shape: try Factors.shape(call), by: website, as: call.operation)
            let state = try await call.relay.recoveryState(handle: handle, of: website)
            let user = try await call.relay.user(named: state.recovery.username, of: website)
            return .answer(APIResponse(201, token.json(of: user, from: call.relay)))
        case .push:
            let activation = try await call.relay.recoverPhone(handle: handle, by: website, as: call.operation)
            let body = try await activation.json(call)
            return activation.shown == nil ? .answer(APIResponse(202, body)) : .secret(body)
        default:
            let setup = try await call.relay.recoverTOTP(
                handle: handle, shape: try Factors.shape(call), by: website, as: call.operation)
            return .secret(try await setup.json(call))
        }
    }

    @Sendable private static func ofUser(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let rows = try await call.relay.recoveries(username: try Enrol.username(call), of: website)
        return .answer(list(rows, call))
    }

    @Sendable private static func ofPhone(
        _ call: VerbCall, _ phone: PhoneCredential
    ) async throws(Refusal) -> VerbOutcome {
        .answer(list(try await call.relay.recoveries(for: phone), call))
    }

    private static func list(_ rows: [RecoveryRow], _ call: VerbCall) -> APIResponse {
        let now = call.api.time.now()
        let list = rows.map { row -> JSONValue in
            var object: JSONObject = [
                "recovery": .string(row.id.text), "factor": .word(row.factor), "state": .word(row.life.phase(at: now)),
                "started_by": .word(row.startedBy), "created_at": .timestamp(row.createdAt),
            ]
            if let ready = row.life.readyAt { object.set("ready_at", .timestamp(ready)) }
            if let announced = row.life.announcedAt { object.set("announced_at", .timestamp(announced)) }
            object.set("expires_at", .timestamp(row.life.expiresAt))
            return .object(object)
        }
        return APIResponse(200, ["recoveries": .array(list)])
    }

    @Sendable private static func cancelByWebsite(
        _ call: VerbCall, _ website: Website
    ) async throws(Refusal) -> VerbOutcome {
        try await call.relay.cancelRecovery(try recovery(call), ofUser: try Enrol.username(call), by: website)
        return .answer(.noContent)
    }

    @Sendable private static func cancelByToken(
        _ call: VerbCall, _ website: Website
    ) async throws(Refusal) -> VerbOutcome {
        try await call.relay.cancelRecovery(token: try call.required(P.recoveryToken), by: website)
        return .answer(.noContent)
    }

    @Sendable private static func cancelByPhone(
        _ call: VerbCall, _ phone: PhoneCredential
    ) async throws(Refusal) -> VerbOutcome {
        try await call.relay.cancelRecovery(try recovery(call), by: phone)
        return .answer(.noContent)
    }

    private static func recovery(_ call: VerbCall) throws(Refusal) -> RecoveryID {
        guard let id = RecoveryID(try call.place("recovery")) else { throw .notFound }
        return id
    }
}

extension SeenRecovery {
    fileprivate var json: JSONObject {
        var object: JSONObject = [
            "recovery": .string(recovery.id.text), "username": .string(recovery.username),
            "factor": .word(recovery.factor), "state": .word(phase),
        ]
        if let ready = recovery.life.readyAt { object.set("ready_at", .timestamp(ready)) }
        if let announced = recovery.life.announcedAt { object.set("announced_at", .timestamp(announced)) }
        object.set("expires_at", .timestamp(recovery.life.expiresAt))
        if let proof = recovery.proof { object.set("proof", .word(proof)) }
        object.set("proofs", .array(proofs.map { .word($0) }))
        if phase == .opened { object.set("spoken_code", .string(SpokenCode(of: recovery.id).text)) }
        if let challenge { object.set("challenge", .string(challenge.text)) }
        if let number { object.set("number", .string(number)) }
        return object
    }
}
