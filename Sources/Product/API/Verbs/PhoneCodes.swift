import Domain
import JSON
import Relay

/// Enrol: the codes that a phone shows itself.
enum PhoneCodes {
    typealias P = Parameters

    static let routes = [
        Route(
            "fetchPhoneCodes", "POST", "/device/totp",
            "Returns the secret of the calling phone's codes, sealed to its agreement key",
            Form(
                .phone(deliver), [P.secretRequest.required, P.pinSignature.optional],
                answers: [
                    Answer(
                        200, "The secret",
                        .object([
                            "factor": .id,
                            "secret": Shape.text("eyJ…").about("A JWE for the agreement key of the phone"),
                        ]))
                ],
                problems: [
                    .forbidden: "the policy gives phones no codes, or the user is locked, frozen, disabled or expired",
                    .pinRequired: "as for an approval", .pinWrong: "as for an approval",
                    .pinLocked: "as for an approval",
                    .conflict: "the phone has another agreement key, or the request is an old one",
                    .conflict: "the secret was given before, or the user has other codes",
                    .limited: "more than ten requests in a minute",
                ]))
    ]

    @Sendable static func deliver(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        let (factor, sealed) = try await call.relay.phoneCodes(
            try call.required(P.secretRequest), pinSignature: call[P.pinSignature], by: phone,
            as: call.relay.operations.new())
        return .answer(APIResponse(200, ["factor": .string(factor.text), "secret": .string(sealed)]))
    }
}
