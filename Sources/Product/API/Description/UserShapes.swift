import Attestation
import Domain
import JSON
import Relay

/// The shapes of users, phones, factors and activations. `JSONShapes.swift` and `Factors.swift` write
/// such values.
extension Shape {
    static let factor = word("Factor", Factor.self)
    static let enrolmentSteps = list(of: word("EnrolmentStep", EnrolmentStep.self)).about(
        "The steps of the enrolment that are not finished")
    private static let author = word("ChangeAuthor", ChangeAuthor.self)
    private static let pinState = word("PINState", PhonePIN.State.self)

    static let qr = text("<svg xmlns=\"http://www.w3.org/2000/svg\">…</svg>").about("A drawing (SVG) of uri")
    static let pem = text("-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n").about("In PEM")
    static let username = text("bob")
    static let number = text("42").about("The number that the website shows, and the user enters on the phone")
    static let jws = text("eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl").about("A compact JWS")

    static let activation = object([
        "code": text("V2JmR0tXc3ZKQQ").about("The activation code, which works once"),
        "uri": text("twoefay://enrol?…").about("The activation for apps; the website may add k"), "link?": link,
        "qr": text("<svg xmlns=\"http://www.w3.org/2000/svg\">…</svg>").about(
            "A drawing (SVG) of link, or else of uri"),
        "expires_at": time,
    ]).named("Activation")
    private static let link = text("https://phone.example.com/phone/#…").about(
        "The same without an app: any camera opens it. Only if the relay serves the web app. Never add k to it")
    static let mailedActivation = object([
        "sent_to": text("b…@example.com").about("The address to which the relay mails the code"), "expires_at": time,
    ]).named("MailedActivation")
    /// The three forms of the activation in the answer of `/register`, in one object.
    static let firstActivation = object([
        "code?": text("V2JmR0tXc3ZKQQ"), "uri?": text("twoefay://enrol?…"), "link?": link, "qr?": qr,
        "expires_at?": time,
        "sent_to?": text("b…@example.com").about("Only if the relay mails the code, which is then left out"),
        "awaits?": words([EnrolmentStep.identity.rawValue]).about(
            "Only until an operator has confirmed the identity; all else is then left out"),
    ]).showing(without: "sent_to", "awaits").named("FirstActivation")

    static let jwk = object([
        "crv": words(["P-256"]), "kty": words(["EC"]), "x": text("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
        "y": text("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
    ]).named("JWK")

    /// A code factor, or the phones of a user together.
    private static let factorMembers = object([
        "kind": factor,
        "state": words(
            ["waiting", "active", "suspended", "locked", "frozen", "disabled", "expired", "undeliverable"]
        ).showing("active"),
        "created_at?": time, "confirmed_at?": time, "device?": id.about("The phone that shows the codes itself"),
        "address?": text("b…@example.com").about("Where codes are sent, masked"),
        "position?": integer(3).about("The recovery code that must be typed back"),
        "last_code_at?": time, "resync?": mark.about("The counter of the token is too far ahead"),
        "failures?": integer(1),
    ])
    static let userFactor = factorMembers.showing(without: "device", "address", "position", "resync", "failures")
        .named("UserFactor")

    static let confirmed = object(["confirmed": flag.about("false for a wrong code, which counts as a failure")])
    static let totpSetup = object([
        "secret": text("JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP").about("In base32"),
        "uri": text("otpauth://totp/…").about("The content of the QR code"), "qr": qr, "expires_at": time,
    ]).named("TOTPSetup")

    static let report = object([
        "os": text("Android").orNull, "os_version": text("16").orNull, "patch_level": integer(202607).orNull,
        "app_version": text("1.4.0").orNull, "model": text("Pixel 9").orNull,
        "battery": integer(80).orNull.about("In percent"), "screen_lock": flag.orNull,
        "rooted": flag.orNull.showing(false), "reported_at": time, "received_at": time,
        "age": integer(3600).about("In seconds, by the relay's clock"),
    ]).about("What the phone last said about itself: a hint, and no proof").named("DeviceReport")

    static let taggedCertificate = object([
        "tag": text("contracts"), "raw": flag.showing(false), "serial": text("3f9a"), "certificate": pem,
        "created_at": time, "expires_at": time,
    ]).named("TaggedCertificate")

    static let signatureVerdict = object([
        "valid": flag, "fault?": word("SignatureFault", SignatureVerdict.Fault.self),
        "label?": text("Contract 17").about("The label that the phone has shown"), "signed_at?": time,
        "username": username, "certificate": taggedCertificate,
    ]).showing(without: "fault").named("SignatureVerdict")

    static let device = object([
        "device": id, "name": text("Bob's phone").orNull, "platform": word("Platform", Platform.self),
        "state": words(DeviceState.allCases.map(\.rawValue) + ["expired"]).showing("active"),
        "jwk": jwk.orNull, "thumbprint": text("oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U").orNull.about("RFC 7638"),
        "stopped_by?": author, "expires_at?": time, "verify_since?": time,
        "agreement?": jwk, "binding?": jws.about("A twoefay-binding+jwt, as the phone sent it"),
        "attestation?": attestation, "app?": app, "webauthn?": passkey, "certificates?": list(of: taggedCertificate),
        "created_at": time,
        "last_seen_at": time.orNull, "login_successes": integer(12), "login_failures": integer(1),
        "wrong_numbers": integer(0), "pin": pinState, "report": report.orNull,
        "report_forged?": mark.about("Somebody else has written the stored report"),
    ]).showing(
        without: "stopped_by", "expires_at", "verify_since", "report_forged", "app", "webauthn"
    ).named("Device")

    /// The claims of a phone that is a page, and its assertion over a receipt.
    static let app = text("https://phone.example.com").about("The origin of the page that the phone is")
    private static let passkey = object([
        "rp": text("phone.example.com"), "id": text("q2w3"), "jwk": jwk,
    ]).about("The credential by which the page checks its owner").named("Passkey")
    static let ownerAssertion = object([
        "authenticator_data": text("SZYN"), "client_data": text("eyJ0"), "signature": text("MEUC"),
    ]).about("The check of the owner of the page, over the receipt").named("OwnerAssertion")

    static let user = object([
        "token": id, "email": text("bob@example.com").orNull, "phone": text("+4915112345678").orNull,
        "state": word("UserState", UserState.self), "stopped_by?": author.about("Who locked or froze the user"),
        "expires_at": time.orNull, "codes": words(["open", "locked"]), "missing?": enrolmentSteps,
        "last_code_at": time.orNull, "factors": list(of: userFactor), "devices": list(of: device),
    ]).showing(without: "stopped_by", "missing").named("User")

    static let changedUser = object([
        "email": text("bob@example.com").orNull, "phone": text("+4915112345678").orNull,
        "display_name": text("Bob").orNull, "language": text("de").orNull, "expires_at": time.orNull,
        "waiting": list(of: text("bob@example.org")).about("The new addresses, each of which got a code"),
    ]).named("ChangedUser")

    static let boundDevice = object([
        "login": words(["verified", "wait"]).about("wait: repeat the request until the user has approved"),
        "device?": id, "certificate?": pem,
        "revocation_code?": text("tHq9XbV2JmR0tXc3ZKQ_").about("Unbinds the phone, at /revoke"),
        "attestation?": object(["verdict": verdict, "faults": list(of: attestationFault)]),
        "number?": number,
    ]).showing(without: "number").named("BoundDevice")

    static let ownPIN = object([
        "device": id,
        "pin": object([
            "state": pinState, "version": integer(1), "tries_left": integer(3), "puk_tries_left": integer(5),
        ]),
    ]).named("OwnPIN")

    static let recoveryState = object([
        "recovery": id, "username": username, "factor": factor,
        "state": recoveryPhase, "ready_at?": time, "announced_at?": time, "expires_at": time,
        "proof?": word("RecoveryProof", RecoveryProof.self),
        "proofs": list(of: factor).about("The factors that can give the second proof"),
        "spoken_code?": text("042317").about("What the user reads to the help desk"),
        "challenge?": id.about("The challenge that asks the phones"), "number?": number,
    ])
    /// The new factor of a recovery: that of `/totp`, `/hotp` or `/activation`, in one object.
    static let recoveredFactor = factorMembers.adding([
        "secret": text("JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP").about("Of an app, in base32"),
        "code": text("V2JmR0tXc3ZKQQ").about("The activation code of a phone"),
        "uri": text("otpauth://totp/…"), "qr": qr, "expires_at": time,
    ]).requiring().showing([
        "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", "uri": "otpauth://totp/…", "qr": qr.example,
        "expires_at": time.example,
    ]).named("RecoveredFactor")
    static let openRecoveries = object([
        "recoveries": list(
            of: object([
                "recovery": id, "factor": factor, "state": recoveryPhase, "started_by": author, "created_at": time,
                "ready_at?": time, "announced_at?": time, "expires_at": time,
            ]).named("OpenRecovery"))
    ])
    private static let recoveryPhase = word("RecoveryPhase", RecoveryPhase.self)
}

/// The shapes of attestations.
extension Shape {
    static let verdict = word("AttestationVerdict", AttestationVerdict.self)
    static let attestationFault = word("AttestationFault", AttestationFault.self)
    private static let facts = object([
        "platform": word("AttestedPlatform", AttestedDevice.Platform.self),
        "hardware": word("AttestedHardware", AttestedDevice.Hardware.self), "app": text("com.example.app"),
        "app_version?": text("140"), "environment?": word("AttestedEnvironment", AttestedDevice.Environment.self),
        "os_version?": text("16"), "patch_level?": integer(202607),
        "boot_state?": word("BootState", AttestedDevice.BootState.self), "locked?": flag,
        "user_authentication?": word("UserAuthentication", AttestedDevice.UserAuthentication.self),
        "root": text("RxU5nQ9n5Yb0vZ8sVfKqk1g2nZ3q4r5s6t7u8v9w0x1").about("The SHA-256 of the root's key"),
    ]).about("What the platform attested").named("AttestedFacts")
    private static let evidence = object([
        "statement": object([
            "format": words(["apple-appattest", "android-key"]).showing("android-key"), "key_id?": text("q2w3"),
            "object?": text("o2Nm"), "chain?": list(of: text("MIIC")),
        ]).showing(["format": "android-key", "chain": ["MIIC"]]),
        "activation_code": text("V2JmR0tXc3ZKQQ"), "judged_at": time,
    ]).about("The attestation itself, as the phone sent it").named("AttestationEvidence")

    static let attestation = object([
        "verdict": verdict, "faults": list(of: attestationFault), "facts?": facts, "evidence?": evidence,
    ]).named("Attestation")

    /// The attestation and the posture of a phone that approved.
    static let judgedPosture = object([
        "verdict?": verdict, "faults?": list(of: attestationFault), "facts?": facts, "asserted?": flag,
        "reported?": object([
            "os_version?": text("16"), "app_version?": text("1.4.0"), "screen_lock?": flag,
            "rooted?": flag.showing(false),
        ]).about("What the phone said about itself"),
        "assertion?": text("omlz").about("An assertion of App Attest over the receipt, in base64url"),
        "evidence?": evidence,
    ]).named("JudgedPosture")

    /// The demands on the phone's posture, before it answers.
    static let demands = object([
        "attestation?": word("AttestationRequirement", AttestationRequirement.self).showing("required"),
        "assertion?": mark, "os_version?": text("16").orNull, "app_version?": text("1.4.0").orNull,
        "patch_level?": integer(202607).orNull, "verified_boot?": mark, "screen_lock?": mark,
        "unmet?": list(of: demand).about("The demands that only a new enrolment can meet"),
    ]).named("PhoneDemands")
    static let demand = word("PhoneDemand", PhoneDemands.Demand.self)
}
