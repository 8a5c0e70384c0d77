import Domain
import JSON
import Relay

/// All parameters of the API. The lengths are those of the database columns.
enum Parameters {
    // Users.
    static let username = Field.text(
        "username", limit: 64, "How the website knows the user; no control, text-direction or invisible characters",
        rule: FieldRule.username)
    static let email = Field.text("email", limit: 254, "An e-mail address", rule: FieldRule.email)
    static let phone = Field.text("phone", limit: 16, "A telephone number in E.164 form", rule: FieldRule.phone)
    static let displayName = Field.line("display_name", limit: 128, "How the user is addressed")
    static let language = Field.text(
        "language", limit: 256, "In which language messages to the user are: a tag, or a whole Accept-Language",
        rule: FieldRule.language)
    static let token = Field.opaque("token", limit: 128, "The user, as /register named it")

    // Phones.
    static let idToken = Field.opaque("id_token", limit: 128, "The user, as /register named it")
    static let pushToken = Field.opaque("dev_token", limit: 2048, "Where the push service finds the phone")
    static let ownPushToken = Field.opaque(
        "dev_token", limit: 2048, mayBeEmpty: true,
        "Where the push service finds the phone; empty or left out where it asks by itself")
    static let activationCode = Field.opaque("activation_code", limit: 64, "From the activation; used once")
    static let proof = Field.opaque("proof", limit: 8192, "A twoefay-enrol+jwt, signed by the phone's new key")
    static let binding = Field.opaque("binding", limit: 4096, "A twoefay-binding+jwt, passed on to the website")
    static let deviceName = Field.line("name", limit: 64, "What the person calls the phone")
    static let platform = Field<Platform>.word("platform", "What the phone is; other where nothing is said")
    static let environment = Field<PushEnvironment>.word(
        "environment", "The push service's; production where nothing is said")

    static let approval = Field.opaque(
        "approval", limit: 128, "The challenge with which the user has approved, as approval_required named it")
    static let deviceSwitch = Field<DeviceSwitch>.word(
        "state", "suspended: it answers no more, until it is active again")
    static let signedPushToken = Field.opaque(
        "dev_token", limit: 8192, "A twoefay-token+jwt with the new push token or none, signed by the phone's key")
    static let renewal = Field.flag("certificate", "true: a new certificate for the phone's key")
    static let revocationCode = Field.opaque(
        "revocation_code", limit: 20, "20 letters, digits, - and _, as the phone got it from /verify")

    // Code factors.
    static let seed = Field.text(
        "secret", limit: 512, "The token's secret: base32, or hexadecimal behind hex:; 16 to 128 bytes"
    ) { TokenSeed.secret($0) == nil ? "must be 16 to 128 bytes as base32, or as hexadecimal behind hex:" : nil }
    static let counter = Field.integer(
        "counter", 0...(1 << 48), "The counter of the token's next code; 0 where nothing is said")
    static let algorithm = Field<OTPAlgorithm>.word("algorithm", "The hash; sha1 where nothing is said")
    static let codeDigits = Field.integer("digits", OTP.digits, "Digits of a code; 6 where nothing is said")
    static let period = Field.integer(
        "period", 30...60, "Seconds that a code is shown, 30 or 60; 30 where nothing is said")
    static let address = Field.line(
        "address", limit: 254, "The new address or number, as PATCH /user/… or /register gave it")
    static let recoveryCode = Field.line("otp", limit: 64, "A recovery code; spaces, dashes and capitals do not matter")
    static let otps = Field<[String]>.values("otps", limit: 2, "Two codes, one after the other", of: otp)

    // Challenges.
    static let challenge = Field.opaque("challenge", limit: 128, "The challenge, as /login named it")
    static let known = Field<[String]>.values(
        "known", limit: Relay.mostKnown, "The challenges that the phone has: a held request waits until others wait",
        of: challenge)
    static let knownBrowser = Field.flag(
        "known", "true: the website knows the browser as this user's, from a login that succeeded there")
    static let request = Field.line(
        "request", limit: 128, "The website's own nonce, shown to no one and part of the context")
    /// Any text: the verb checks it, and records a refused decision in the audit.
    static let answer = Field.plain("answer", "A twoefay-decision+jwt, where answers are signed")
    static let number = Field.digits("number", 2...6, "The number that the person carries to the phone")
    static let ip = Field.text("ip", limit: 45, "Where the login comes from", rule: FieldRule.ip)
    static let userAgent = Field.line("user_agent", limit: 512, "With what the login is made")
    static let service = Field.line("service", limit: 64, "What the person logs in to")
    static let action = Field.line("action", limit: 64, "What is to be done")
    static let details = Field<[Context.Detail]>.list(
        "details", limit: 16, "What the person has to know about it, in the order to show it",
        of: [label.required, value.required]
    ) { object in
        guard let label = object["label"]?.string, let value = object["value"]?.string else { return nil }
        return Context.Detail(label: label, value: value)
    }
    static let label = Field.line("label", limit: 64, "What it is, as in amount")
    static let value = Field.line("value", limit: 256, "What it comes to")
    static let expiresIn = Field.integer(
        "expires_in", Policy.lifetimes, "Seconds until the challenge expires; the policy's where nothing is said")
    static let otp = Field.digits("otp", 6...10, "The code that the user typed")
    /// A code, exactly as typed: nothing is trimmed from digits, and digits of other scripts are
    /// refused.
    static let anyCode = Field.text(
        "otp", limit: 64, "The code that the user typed: 6 to 8 digits, or a recovery code",
        rule: { CodeWindow.isCode($0) ? nil : "must be 6 to 8 digits, or a recovery code" })
    static let factors = Field<[Factor]>.values(
        "factors", limit: Factor.choices.count, "Of the policy's factors only these, in the policy's order",
        of: choice)
    static let minAssurance = Field<Assurance>.word(
        "min_assurance", "The least that a success has to be worth; the policy's where that is more")
    static let factor = choice
    private static let choice = Field<Factor>.word("factor", "What to begin", of: Factor.choices)
}
