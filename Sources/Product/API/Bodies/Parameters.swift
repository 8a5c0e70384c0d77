import Crypto
import Domain
import JSON
import Relay

/// All parameters of the API. The lengths are those of the database columns.
enum Parameters {
    // Users.
    static let username = Field.text(
        "username", limit: 64, "The website's name of the user; no control, text-direction or invisible characters",
        rule: FieldRule.username
    ).like(FieldPattern.line)
    static let email = Field.text("email", limit: 254, "An e-mail address", rule: FieldRule.email)
        .like(FieldPattern.email).unlike(FieldPattern.longMailbox)
    static let phone = Field.text("phone", limit: 16, "A telephone number in E.164 form", rule: FieldRule.phone)
        .like(FieldPattern.phone)
    static let displayName = Field.line("display_name", limit: 128, "The name by which messages address the user")
    static let language = Field.text(
        "language", limit: 256, "The language of messages to the user: a tag, or a full Accept-Language value",
        rule: FieldRule.language
    ).like(FieldPattern.language).unlike(FieldPattern.longTag)
    static let expiresAt = Field.time(
        "expires_at", "The time from which no login of the user succeeds, such as 2026-12-31T23:00:00Z")
    static let token = Field.id("token", "The user's token from /register")

    // Phones.
    static let idToken = Field.opaque("id_token", limit: 128, "The user's token from /register")
    static let pushToken = Field.opaque("dev_token", limit: 2048, "The phone's device token at the push service")
    static let ownPushToken = Field.opaque(
        "dev_token", limit: 2048, mayBeEmpty: true,
        "The phone's device token at the push service; empty or left out if the phone polls")
    static let activationCode = Field.opaque("activation_code", limit: 64, "From the activation; works once")
    static let proof = Field.opaque("proof", limit: 8192, "A twoefay-enrol+jwt, signed by the phone's new key")
        .like(FieldPattern.jws)
    static let binding = Field.opaque("binding", limit: 4096, "A twoefay-binding+jwt, passed on to the website")
    static let attestation = Field.object(
        "attestation", "The platform's statement about the key: format, and key_id and object, or chain",
        of: [
            "format": ["type": "string", "enum": ["apple-appattest", "android-key"]], "key_id": base64URL,
            "object": base64URL, "chain": ["type": "array", "items": base64URL],
        ], required: ["format"])
    private static let base64URL: JSONValue = ["type": "string", "pattern": .string(FieldPattern.opaque)]
    static let assertion = Field.opaque(
        "assertion", limit: 5500, "An assertion of App Attest over the answer, in base64url")
    static let ownerAssertion = Field.object(
        "webauthn", "An assertion of WebAuthn over the answer, from a phone that is a page",
        of: ["authenticator_data": base64URL, "client_data": base64URL, "signature": base64URL],
        required: ["authenticator_data", "client_data", "signature"])
    static let certificateRequest = Field.text(
        "csr", limit: SigningRequest.maxBytes, "A PKCS #10 request in PEM for a key of the caller, signed by it"
    ) { text in
        text.utf8.allSatisfy { (0x20...0x7e).contains($0) || $0 == 0x0a || $0 == 0x0d }
            ? nil : LocalizedText("must be PEM text", de: "muss PEM-Text sein")
    }.like(FieldPattern.pem)
    static let deviceName = Field.line("name", limit: 64, "The user's name for the phone")
    static let platform = Field<Platform>.word("platform", "The platform of the phone; default: other")
    static let environment = Field<PushEnvironment>.word(
        "environment", "The environment of the device token; default: production")

    static let approval = Field.opaque(
        "approval", limit: 128, "The challenge from approval_required, which the user has approved")
    static let deviceSwitch = Field<DeviceSwitch>.word(
        "state", "suspended: the phone cannot answer until it is active again")
    static let deviceVerified = Field.flag(
        "verified", "true: the user has the phone, which was in doubt after a restore of the relay's store")
    static let signedPushToken = Field.opaque(
        "dev_token", limit: 8192, "A twoefay-token+jwt with the new device token or none, signed by the phone's key"
    ).like(FieldPattern.jws)
    static let renewal = Field.flag("certificate", "true: a new certificate for the phone's key")
    static let deviceID = Field.id("device", "The id of a phone, which stands for its user")
    static let status = Field.opaque(
        "status", limit: 8192, "A twoefay-status+jwt with the phone's report about itself, signed by the phone's key"
    ).like(FieldPattern.jws)
    static let goodbye = Field.opaque(
        "goodbye", limit: GoodbyeStatement.maxBytes, "A twoefay-goodbye+jwt, signed by the phone's key"
    ).like(FieldPattern.jws)
    static let pinStatement = Field.opaque(
        "pin", limit: PINStatement.maxBytes, "A twoefay-pin+jwt, signed by the phone's key"
    ).like(FieldPattern.jws)
    static let pinSignature = Field.opaque(
        "pin_signature", limit: 86, "The signature of the PIN's key over the same bytes, in base64url"
    ).like(FieldPattern.ecdsa)
    static let pukSignature = Field.opaque(
        "puk_signature", limit: 86, "The signature of the PUK's key over the same bytes, in base64url"
    ).like(FieldPattern.ecdsa)
    static let secretRequest = Field.opaque(
        "request", limit: 8192, "A twoefay-secret+jwt, signed by the phone's key"
    ).like(FieldPattern.jws)
    static let tag = Field.text("tag", limit: CertificateTag.nameLimit, "A tag of the policy certificate-tags") {
        text in
        CertificateTag.isName(text)
            ? nil
            : LocalizedText(
                "must have lower-case letters, digits and dashes, and begin with a letter",
                de: "muss aus Kleinbuchstaben, Ziffern und Bindestrichen bestehen und mit einem Buchstaben beginnen")
    }.like(FieldPattern.tag)
    static let certificateProof = Field.opaque(
        "proof", limit: 8192, "A twoefay-certificate+jwt about tag and csr, signed by the phone's enrolment key"
    ).like(FieldPattern.jws)
    static let signer = Field.id("device", "The id of the phone that has signed")
    static let hash = Field.opaque("hash", limit: 64, "The SHA-256 of the document, in base64url")
        .like(FieldPattern.digest)
    static let statement = Field.opaque(
        "statement", limit: SignedDocument.maxBytes, "A twoefay-document+jwt about the document"
    )
    static let signature = Field.opaque(
        "signature", limit: 128, "For a tag that is marked raw: an ECDSA signature over the hash, in DER and base64"
    ).like(FieldPattern.base64)
    static let revocationCode = Field.opaque(
        "revocation_code", limit: 20, "The code from /verify: 20 letters, digits, - and _"
    ).like(FieldPattern.revocationCode)

    // Notices.
    static let title = Field.line("title", limit: NoticeLimits.title, "The title of the message")
    static let text = Field.text(
        "text", limit: NoticeLimits.text, "The text of the message; \\n separates lines",
        rule: { FieldRule.lines($0, limit: NoticeLimits.text) }
    ).like(FieldPattern.lines)

    // Accounts.
    static let accountLink = Field.opaque(
        "link", limit: AccountLink.maxBytes, "A twoefay-account+jwt, from the fragment of the address in a mail")

    // Recoveries.
    static let recoveryToken = Field.opaque("token", limit: 64, "The token in the fragment of the mailed link")
    static let handle = Field.opaque("handle", limit: 64, "The handle from POST /recovery")
    static let lost = Field<Factor>.word("factor", "The lost factor; push: all phones", of: Relay.recoverable)
    static let presentCode = Field.digits("otp", 6...10, "The present code of the app that is replaced")

    // A phone whose clock is wrong. The header field of a request without a body has this value.
    static let nonce = Field.text("nonce", limit: 64, "The caller's random nonce: 16 to 64 base64url characters") {
        text in
        let isNonce =
            text.utf8.count >= 16
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
        return isNonce
            ? nil
            : LocalizedText(
                "must be 16 to 64 base64url characters", de: "muss aus 16 bis 64 Zeichen von base64url bestehen")
    }.like(FieldPattern.nonce)

    // Code factors.
    static let seed = Field.text(
        "secret", limit: 512, "The token's secret, 16 to 128 bytes: base32, or hexadecimal with the prefix hex:"
    ) { text in
        TokenSeed.secret(text) != nil
            ? nil
            : LocalizedText(
                "must be 16 to 128 bytes: base32, or hexadecimal with the prefix hex:",
                de: "muss 16 bis 128 Bytes lang sein: in Base32 oder hexadezimal mit dem Präfix hex:")
    }.like(FieldPattern.seed)
    static let counter = Field.integer(
        "counter", 0...(1 << 48), "The counter of the token's next code; default: 0")
    static let algorithm = Field<OTPAlgorithm>.word("algorithm", "The hash algorithm; default: sha1")
    static let codeDigits = Field.integer("digits", OTP.digits, "Digits of a code; default: 6")
    static let period = Field.integer(
        "period", 30...60, "Seconds that a code is shown, 30 or 60; default: 30"
    ).with("multipleOf", 30)
    static let address = Field.line(
        "address", limit: 254, "The new address or number, as sent to PATCH /user/… or /register")
    static let recoveryCode = Field.line("otp", limit: 64, "A recovery code; spaces, dashes and case are ignored")
    static let otps = Field<[String]>.values("otps", limit: 2, "Two consecutive codes", of: otp)
        .with("minItems", 2)

    // Challenges.
    static let challenge = Field.id("challenge", "The challenge's id from /login")
    static let known = Field<[String]>.values(
        "known", limit: Relay.mostKnown,
        "Challenges that the phone shows; a held request waits until the pending ones differ",
        of: .opaque("challenge", limit: 128, "A challenge"))
    static let pins = Field<[String]>.values(
        "pins", limit: PinStatement.mostPins,
        "The pins of the relay's authority that the phone holds, in base64url",
        of: .opaque("pin", limit: 64, "A pin"))
    static let pinsSequence = Field.integer(
        "pins_seq", 0...(1 << 53), "The number of the last statement about pins that the phone took; default: 0")
    static let knownBrowser = Field.flag(
        "known", "true: this user has logged in before with this browser")
    static let request = Field.line(
        "request", limit: 128, "The website's own nonce; part of the context")
    /// Any text: the verb checks it, and records a refused decision in the audit.
    static let answer = Field.plain("answer", "A twoefay-decision+jwt, if answers are signed")
    static let number = Field.digits("number", 2...6, "The number that the user enters on the phone")
    static let ip = Field.text("ip", limit: 45, "The IP address that the login comes from", rule: FieldRule.ip)
        .like(FieldPattern.ip)
    static let userAgent = Field<BrowserText>.browserText(
        "user_agent", limit: 512, "The User-Agent of the browser that logs in, as it was sent")
    static let service = Field.line("service", limit: 64, "The service that the user logs in to")
    static let action = Field.line("action", limit: 64, "The action to approve")
    static let details = Field<[Context.Detail]>.list(
        "details", limit: 16, "Details to show to the user, in this order",
        of: [label.required, value.required]
    ) { object in
        guard let label = object["label"]?.string, let value = object["value"]?.string else { return nil }
        return Context.Detail(label: label, value: value)
    }
    static let label = Field.line("label", limit: 64, "The label of the detail, such as amount")
    static let value = Field.line("value", limit: 256, "The value of the detail")
    static let expiresIn = Field.integer(
        "expires_in", Policy.lifetimes, "Seconds until the challenge expires; default: the policy's")
    static let otp = Field.digits("otp", 6...10, "The code that the user typed")
    /// A code, exactly as typed: nothing is trimmed from digits, and digits of other scripts are
    /// refused.
    static let anyCode = Field.text(
        "otp", limit: 64, "The code that the user typed: 6 to 8 digits, a recovery code, or a temporary code",
        rule: { text in
            CodeWindow.isCode(text)
                ? nil
                : LocalizedText(
                    "must be 6 to 8 digits, a recovery code, or a temporary code",
                    de: "muss aus 6 bis 8 Ziffern bestehen, oder ein Notfallcode oder vorläufiger Code sein")
        }
    ).like(FieldPattern.anyCode)
    static let factors = Field<[Factor]>.values(
        "factors", limit: Factor.choices.count, "Only these of the policy's factors, in the policy's order",
        of: choice)
    static let minAssurance = Field<Assurance>.word(
        "min_assurance", "The minimum assurance of a success; the policy's minimum applies if it is higher")
    static let factor = choice
    private static let choice = Field<Factor>.word("factor", "The factor to begin", of: Factor.choices)
}
