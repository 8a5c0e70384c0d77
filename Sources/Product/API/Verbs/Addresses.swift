import Domain
import JSON
import Relay

/// Enrol: changes of a user by the website, and the addresses that a code must confirm.
enum Addresses {
    typealias P = Parameters

    static let routes = [
        Route(
            "PATCH", "/user/{username}",
            "Changes a user's display name, language, expiry, email address and phone number",
            Form(
                .website(change),
                [
                    P.email.orNull.optional, P.phone.orNull.optional, P.displayName.orNull.optional,
                    P.language.orNull.optional, P.expiresAt.orNull.optional, P.approval.optional,
                ], oneOf: ["email", "phone", "display_name", "language", "expires_at"],
                answers: [
                    (
                        200,
                        "email, phone, display_name, language, expires_at; waiting: new addresses, each of which got a code"
                    ),
                    (403, "approval_required: the challenge, and number?, of the approval"),
                    (409, "another user has the address, or no courier can send a code to it"),
                    (429, "too many codes were sent to it; request one later with /confirm"),
                ])),
        Route(
            "POST", "/user/{username}/confirm", "Confirms a new address with its code, or sends another code",
            Form(
                .website(confirm), [P.address.required, P.otp.optional],
                answers: [
                    (200, "confirmed: true, or false for a wrong code, which counts as a failure"),
                    (202, "without otp: a code is being sent"),
                    (409, "the address awaits no code, now needs an approval, or belongs to another user"),
                    (429, "too many codes were sent to it, or too soon after a wrong code"),
                ])),
    ]

    @Sendable private static func change(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        var change = UserChange()
        change.displayName = call[P.displayName.orNull]
        change.language = call[P.language.orNull]
        change.expiresAt = call[P.expiresAt.orNull]
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
                    "language": .text(user.language), "expires_at": .timestamp(user.expiresAt),
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
