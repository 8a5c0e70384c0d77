import Domain
import JSON
import Relay

/// The shape of what a person sees of their own account.
extension Shape {
    private static let accountDevice = object([
        "device": id, "name?": text("Bob's phone"), "platform": word("Platform", Platform.self),
        "state": words(["active", "suspended", "waiting"]), "created_at": time, "last_seen_at?": time,
        "this?": mark.about("The calling phone"),
    ]).named("AccountDevice")

    private static let accountFactor = object([
        "kind": words(["totp", "hotp", "sms", "mail", "recovery"]),
        "state": words(
            ["waiting", "active", "locked", "frozen", "disabled", "expired", "undeliverable"]
        ).showing("active"),
        "created_at": time, "address?": text("b…@example.com").about("Where codes are sent, masked"),
        "left?": integer(7).about("The unused recovery codes"),
    ]).showing(without: "address", "left").named("AccountFactor")

    private static let accountLogin = object([
        "challenge": id, "created_at": time, "ended_at?": time, "login": result,
        "reason?": word("Reason", Reason.self), "factor?": factor, "device?": id.about("The phone that decided"),
        "service?": text("web shop"), "action?": text("transfer"), "ip?": text("192.0.2.1"),
        "place?": text("Berlin, Germany"), "user_agent?": text("Mozilla/5.0"),
        "report?": object([
            "nonce": text("3q2-7w").about("In base64url"),
            "context": text("e30").about("The bytes to show and to sign, in base64url"),
        ]).about("For a signed decision fraud, which would still freeze the user. Only for a phone"),
        "can_report?": mark.about("The link can still report it. Only for a link"),
    ]).showing(without: "reason", "can_report").named("AccountLogin")

    static let account = object([
        "username": username, "website": text("shop"), "display_name": text("The Shop"),
        "devices": list(of: accountDevice), "factors": list(of: accountFactor),
        "logins": list(of: accountLogin).about("The newest first, at most 50, of the last 30 days"),
    ]).named("Account")
}
