import Domain
import JSON
import Relay

/// Enrol: the codes that a phone shows itself.
enum PhoneCodes {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/device/totp", "Returns the secret of the calling phone's codes, sealed to its agreement key",
            Form(
                .phone(deliver), [P.secretRequest.required, P.pinSignature.optional],
                answers: [
                    (200, "factor, secret: a JWE for the agreement key of the phone"),
                    (403, "the policy gives phones no codes, or the user is locked, frozen, disabled or expired"),
                    (403, "pin_required, pin_wrong or pin_locked, as for an approval"),
                    (
                        409,
                        "the phone has another agreement key, the request is an old one, the secret was given before, or the user has other codes"
                    ),
                    (429, "more than ten requests in a minute"),
                ]))
    ]

    @Sendable static func deliver(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        let (factor, sealed) = try await call.relay.phoneCodes(
            try call.required(P.secretRequest), pinSignature: call[P.pinSignature], by: phone,
            as: call.relay.operations.new())
        return .answer(APIResponse(200, ["factor": .string(factor.text), "secret": .string(sealed)]))
    }
}
