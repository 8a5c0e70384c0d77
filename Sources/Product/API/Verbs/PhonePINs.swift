import Domain
import JSON
import Relay

/// Enrol: the PIN of a phone.
enum PhonePINs {
    typealias P = Parameters

    static let routes = [
        Route(
            "showPIN", "GET", "/device/pin", "Returns the state of the calling phone's PIN",
            Form(.phone(show), answers: [Answer(200, "The state", .ownPIN)])),
        Route(
            "changePIN", "POST", "/device/pin", "Sets, changes, resets or unlocks the calling phone's PIN",
            Form(
                .phone(change), [P.pinStatement.required, P.pinSignature.optional, P.pukSignature.optional],
                answers: [Answer(200, "The new state", .ownPIN)],
                problems: [
                    .pinWrong: "the old PIN was wrong; tries_left",
                    .pinLocked: "the PIN is locked, and only the PUK resets it",
                    .pukWrong: "the PUK was wrong; tries_left", .pukLocked: "the PUK is locked, too",
                    .unlockWrong: "the code of the help desk was wrong; tries_left",
                    .unlockVoid: "no code of the help desk is valid for the phone",
                    .conflict: "the statement is for another version, or the phone has a PIN or none",
                    .limited: "more than ten requests in a minute, or others changed the PIN at the same time",
                ])),
    ]

    @Sendable static func show(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        answer(phone, try await call.relay.pin(of: phone))
    }

    @Sendable static func change(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        answer(
            phone,
            try await call.relay.changePIN(
                try call.required(P.pinStatement), pinSignature: call[P.pinSignature],
                pukSignature: call[P.pukSignature], by: phone))
    }

    private static func answer(_ phone: PhoneCredential, _ pin: PhonePIN) -> VerbOutcome {
        .answer(
            APIResponse(
                200,
                [
                    "device": .string(phone.id.text),
                    "pin": [
                        "state": .word(pin.state), "version": .integer(Int64(pin.version)),
                        "tries_left": .integer(Int64(pin.triesLeft)),
                        "puk_tries_left": .integer(Int64(pin.pukTriesLeft)),
                    ],
                ]))
    }
}
