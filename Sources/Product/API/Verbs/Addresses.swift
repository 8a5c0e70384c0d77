import Domain
import JSON
import Relay

/// Enrol: changes of a user by the website, and the addresses that a code must confirm.
enum Addresses {
    typealias P = Parameters

    static let routes = [
        Route(
            "changeUser", "PATCH", "/user/{username}",
            "Changes a user's display name, language, expiry, email address and phone number",
            Form(
                .website(change),
                [
                    P.email.orNull.optional, P.phone.orNull.optional, P.displayName.orNull.optional,
                    P.language.orNull.optional, P.expiresAt.orNull.optional, P.approval.optional,
                ], oneOf: ["email", "phone", "display_name", "language", "expires_at"],
                answers: [Answer(200, "The user as it is now", .changedUser)],
                problems: [
                    .approvalRequired: "a new address has to be approved first",
                    .forbidden: "the user is barred, the approval is void, or an operator has set an earlier expiry",
                    .conflict: "another user has the address, or no courier can send a code to it",
                    .limited: "too many codes were sent to it; request one later with /confirm",
                ])),
        Route(
            "confirmAddress", "POST", "/user/{username}/confirm",
            "Confirms a new address with its code, or sends another code",
            Form(
                .website(confirm), [P.address.required, P.otp.optional],
                answers: [
                    Answer(200, "Whether the code was right", .confirmed),
                    Answer(
                        202, "Without otp: a code is being sent", .object(["address": .text("bob@example.org")])),
                ],
                problems: [
                    .codesLocked: "too many codes of the user were wrong",
                    .conflict: "the address awaits no code, now needs an approval, or belongs to another user",
                    .limited: "too many codes were sent to it, or too soon after a wrong code",
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
