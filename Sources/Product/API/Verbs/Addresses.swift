import Domain
import JSON
import Relay

/// Enrol: changes of a user by the website, and the addresses that a code must confirm.
enum Addresses {
    typealias P = Parameters

    static let routes = [
        Route(
            "PATCH", "/user/{username}", "Changes a user's names and addresses",
            Form(
                .website(change),
                [
                    P.email.orNull.optional, P.phone.orNull.optional, P.displayName.orNull.optional,
                    P.language.orNull.optional, P.approval.optional,
                ], oneOf: ["email", "phone", "display_name", "language"],
                answers: [
                    (
                        200,
                        "email, phone, display_name, language; waiting: new addresses, each of which was sent a code"
                    ),
                    (403, "approval_required: challenge and number? of what the user is asked now"),
                    (409, "it belongs to another user, or nothing is set up that could send a code to it"),
                    (429, "too many codes went there; it waits for one that /confirm asks for"),
                ])),
        Route(
            "POST", "/user/{username}/confirm", "Hands in the code that a new address was sent, or has one sent again",
            Form(
                .website(confirm), [P.address.required, P.otp.optional],
                answers: [
                    (200, "confirmed: true, or false for a wrong code, which counts"),
                    (202, "without otp: a code is on its way"),
                    (409, "that address waits for no code, needs an approval by now, or is another's"),
                    (429, "too many codes went there, or too soon after a wrong one"),
                ])),
    ]

    @Sendable private static func change(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        var change = UserChange()
        change.displayName = call[P.displayName.orNull]
        change.language = call[P.language.orNull]
        if let email = call[P.email.orNull] { change.addresses.updateValue(email, forKey: .mail) }
        if let phone = call[P.phone.orNull] { change.addresses.updateValue(phone, forKey: .sms) }
        let changed = try await call.relay.change(
            username: try Enrol.username(call), change, approval: call.approval, by: website, as: call.operation)
        let user = changed.user
        return .answer(
            APIResponse(
                200,
                [
                    "email": .text(user.email), "phone": .text(user.phone), "display_name": .text(user.displayName),
                    "language": .text(user.language),
                    "waiting": .array(changed.waiting.map { .string($0.text) }),
                ]))
    }

    @Sendable private static func confirm(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let (username, address) = (try Enrol.username(call), try call.required(P.address))
        guard let code = call[P.otp] else {
            try await call.relay.sendCode(to: address, username: username, by: website, as: call.operation)
            return .answer(APIResponse(202, ["address": .string(address)]))
        }
        let confirmed = try await call.relay.confirm(
            address: address, code: code, username: username, by: website, as: call.operation)
        return .answer(APIResponse(200, ["confirmed": .bool(confirmed)]))
    }
}
