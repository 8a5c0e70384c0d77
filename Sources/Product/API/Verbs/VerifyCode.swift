import Domain
import JSON
import Relay

/// Enrol: the check of a code outside a login.
enum VerifyCode {
    typealias P = Parameters

    static let routes = [
        Route(
            "verifyOTP", "POST", "/verify-otp",
            "Checks a code of a user's app or token outside a login, and uses it up",
            Form(
                .website(verify), [P.username.optional, P.deviceID.optional, P.otp.required],
                oneOf: ["username", "device"], isExclusive: true,
                answers: [
                    Answer(
                        200, "Whether the code was right; a wrong one counts as a failure",
                        .object(["valid": .flag, "factor?": Shape.factor.showing("totp")]))
                ],
                problems: [
                    .codesLocked: "too many codes of the user were wrong",
                    .forbidden: "the user is locked, frozen, disabled or expired",
                    .notFound: "there is no such user or phone",
                    .conflict: "the user has no app and no token", .limited: "too soon after a wrong code",
                ]))
    ]

    @Sendable private static func verify(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let factor = try await call.relay.verify(
            code: try call.required(P.otp), of: try owner(call), by: website, as: call.operation)
        var body: JSONObject = ["valid": .bool(factor != nil)]
        if let factor { body.set("factor", .word(factor)) }
        return .answer(APIResponse(200, body))
    }

    /// The user or the phone that the request names.
    private static func owner(_ call: VerbCall) throws(Refusal) -> CodeOwner {
        if let name = call[P.username] { return .username(name) }
        guard let device: DeviceID = try call.id(P.deviceID) else { throw .notFound }
        return .device(device)
    }
}
