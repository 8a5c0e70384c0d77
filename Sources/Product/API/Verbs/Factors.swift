import Domain
import JSON
import Relay
import World

/// Enrol: code factors, under `/user/{username}`.
enum Factors {
    typealias P = Parameters

    private static let approval =
        "the user is barred, the identity is not confirmed, or the approval is void"
    private static let asked = "the user has to approve this first"
    private static let barred = "the user is locked, frozen, disabled or expired"
    private static let dropped = [Answer(204, "The user has no factor of this kind now")]
    private static let paused = "too soon after a wrong code"
    private static let locked = "too many codes of the user were wrong"

    static let routes = [
        Route(
            "createTOTP", "POST", "/user/{username}/totp",
            "Creates a secret for an authenticator app; a first code confirms it",
            Form(
                .website(addTOTP),
                [
                    P.algorithm.optional, P.codeDigits.optional, P.period.optional, P.presentCode.optional,
                    P.approval.optional,
                ],
                answers: [Answer(201, "The secret, which is shown only once", .totpSetup)],
                problems: [
                    .approvalRequired: asked, .forbidden: approval, .codesLocked: locked,
                    .shownOnce: Enrol.shownOnce, .limited: paused,
                ])),
        Route(
            "confirmTOTP", "POST", "/user/{username}/totp/confirm",
            "Confirms the authenticator app with its first code",
            Form(
                .website(confirmTOTP), [P.otp.required],
                answers: [Answer(200, "Whether the code was right", .confirmed)],
                problems: [
                    .forbidden: barred, .codesLocked: locked,
                    .conflict: "no app awaits its first code, or the user must now approve it", .limited: paused,
                ])),
        Route(
            "deleteTOTP", "DELETE", "/user/{username}/totp", "Deletes the authenticator app",
            Form(.website(drop(.totp)), answers: dropped)),
        Route(
            "addHOTP", "POST", "/user/{username}/hotp", "Adds a hardware token, which is valid at once",
            Form(
                .website(addHOTP),
                [
                    P.seed.required, P.counter.optional, P.codeDigits.optional, P.algorithm.optional,
                    P.approval.optional,
                ],
                answers: [Answer(201, "The token", .userFactor)],
                problems: [.approvalRequired: asked, .forbidden: approval, .conflict: "the user has a token"])),
        Route(
            "resyncHOTP", "POST", "/user/{username}/hotp/resync",
            "Resynchronises a token whose counter is too far ahead",
            Form(
                .website(resynchronise), [P.otps.required],
                answers: [
                    Answer(
                        200, "Whether the codes are consecutive; if not, that counts as a failure",
                        .object(["resynced": .flag]))
                ],
                problems: [
                    .forbidden: barred, .codesLocked: locked, .conflict: "the user has no token", .limited: paused,
                ])),
        Route(
            "createRecoveryCodes", "POST", "/user/{username}/recovery-codes",
            "Creates ten recovery codes, which replace all earlier ones",
            Form(
                .website(addRecoveryCodes), [P.approval.optional],
                answers: [
                    Answer(
                        201, "The codes, which are shown only once",
                        .object([
                            "codes": .list(of: .text("abcd-efgh-ijkl-mnop")),
                            "position?": Shape.integer(3).about("The code that must be typed back"),
                        ]))
                ],
                problems: [.approvalRequired: asked, .forbidden: approval, .shownOnce: Enrol.shownOnce])),
        Route(
            "confirmRecoveryCodes", "POST", "/user/{username}/recovery-codes/confirm",
            "Confirms that the user wrote the recovery codes down",
            Form(
                .website(confirmRecoveryCodes), [P.recoveryCode.required],
                answers: [Answer(200, "Whether the code was right", .confirmed)],
                problems: [
                    .forbidden: barred, .codesLocked: locked,
                    .conflict: "no recovery codes wait, or the user must now approve them", .limited: paused,
                ])),
        Route(
            "deleteHOTP", "DELETE", "/user/{username}/hotp", "Deletes the hardware token",
            Form(.website(drop(.hotp)), answers: dropped)),
    ]

    @Sendable private static func addTOTP(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let username = try Enrol.username(call)
        let setup = try await call.relay.addTOTP(
            username: username, shape: try shape(call), code: call[P.presentCode], approval: call.approval,
            by: website, as: call.operation)
        return .secret(try await setup.json(call))
    }

    @Sendable private static func confirmTOTP(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome
    {
        let username = try Enrol.username(call)
        let confirmed = try await call.relay.confirmTOTP(
            username: username, code: try call.required(P.otp), by: website, as: call.operation)
        return .answer(APIResponse(200, ["confirmed": .bool(confirmed)]))
    }

    @Sendable private static func addHOTP(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let username = try Enrol.username(call)
        guard let secret = TokenSeed.secret(try call.required(P.seed)) else { throw .broken }
        let factor = try await call.relay.addHOTP(
            username: username, seed: TokenSeed(secret: secret, counter: Int64(call[P.counter] ?? 0)),
            shape: try shape(call), approval: call.approval, by: website, as: call.operation)
        let user = try await call.relay.user(named: username, of: website)
        return .answer(APIResponse(201, factor.json(of: user, from: call.relay)))
    }

    @Sendable private static func resynchronise(_ call: VerbCall, _ website: Website) async throws(Refusal)
        -> VerbOutcome
    {
        let username = try Enrol.username(call)
        let found = try await call.relay.resynchronise(
            username: username, codes: try call.required(P.otps), by: website, as: call.operation)
        return .answer(APIResponse(200, ["resynced": .bool(found)]))
    }

    @Sendable private static func addRecoveryCodes(
        _ call: VerbCall, _ website: Website
    ) async throws(Refusal) -> VerbOutcome {
        let new = try await call.relay.addRecoveryCodes(
            username: try Enrol.username(call), approval: call.approval, by: website, as: call.operation)
        var body: JSONObject = ["codes": .array(new.codes.map { .string($0) })]
        if let position = new.position { body.set("position", .integer(Int64(position))) }
        return .secret(body)
    }

    @Sendable private static func confirmRecoveryCodes(
        _ call: VerbCall, _ website: Website
    ) async throws(Refusal) -> VerbOutcome {
        let confirmed = try await call.relay.confirmRecoveryCodes(
            username: try Enrol.username(call), code: try call.required(P.recoveryCode), by: website,
            as: call.operation)
        return .answer(APIResponse(200, ["confirmed": .bool(confirmed)]))
    }

    private static func drop(
        _ kind: Factor
    ) -> @Sendable (VerbCall, Website) async throws(Refusal) -> VerbOutcome {
        { call, website async throws(Refusal) in
            try await call.relay.drop(kind, username: try Enrol.username(call), by: website)
            return .answer(.noContent)
        }
    }

    static func shape(_ call: VerbCall) throws(Refusal) -> CodeShape {
        let usual = CodeShape()
        let period = call[P.period] ?? usual.period
        guard CodeShape.periods.contains(period) else {
            throw .invalid([
                FieldFault("period", .format, LocalizedText("must be 30 or 60", de: "muss 30 oder 60 sein"))
            ])
        }
        return CodeShape(
            algorithm: call[P.algorithm] ?? usual.algorithm, digits: call[P.codeDigits] ?? usual.digits,
            period: period)
    }
}

extension VerbCall {
    /// The challenge by which the user approved the change; nil if none was given. A malformed id
    /// is replaced by a random one, so it gets the same answer as an unknown one.
    var approval: ChallengeID? {
        self[Parameters.approval].map { ChallengeID($0) ?? relay.operations.draw() }
    }
}

extension TOTPSetup {
    func json(_ call: VerbCall) async throws(Refusal) -> JSONObject {
        [
            "secret": .string(secret), "uri": .string(uri), "qr": try await call.qr(uri),
            "expires_at": .string(expiresAt.rfc3339),
        ]
    }
}

extension CodeFactor {
    /// The JSON of a user's factor for the website. An active factor is shown as locked, frozen or
    /// disabled if its user is, and as locked if all codes are locked. Otherwise it is shown as
    /// undeliverable if its codes are sent and nothing is set up that sends them.
    func json(of user: UserRow, from relay: Relay) -> JSONObject {
        let barred: UserState? = user.state != .active ? user.state : user.codes.isLocked ? .locked : nil
        let active = barred?.rawValue ?? (relay.canSend(kind) ? state.rawValue : "undeliverable")
        var object: JSONObject = [
            "kind": .word(kind), "state": .string(state == .active ? active : state.rawValue),
            "created_at": .timestamp(createdAt),
        ]
        if let confirmedAt { object.set("confirmed_at", .timestamp(confirmedAt)) }
        if let device { object.set("device", .string(device.text)) }
        if let maskedAddress { object.set("address", .string(maskedAddress)) }
        if kind == .recovery, state == .waiting { object.set("position", .integer(counter)) }
        if let lastCodeAt { object.set("last_code_at", .timestamp(lastCodeAt)) }
        if needsResync { object.set("resync", .bool(true)) }
        if failures > 0 { object.set("failures", .integer(Int64(failures))) }
        return object
    }
}
