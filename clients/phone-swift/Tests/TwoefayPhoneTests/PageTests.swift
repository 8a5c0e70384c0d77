import LinuxPhone
import Testing
import TwoefayPhone

/// The worked examples of docs/phones/device-protocol.md, byte for byte.
struct PageTests {
    private let page: ProtocolPage
    private let cryptography = OpenSSLCryptography()
    /// The key of RFC 6979, A.2.5.
    private let key: SoftwareKey

    init() throws {
        page = try ProtocolPage("device-protocol.md")
        key = try SoftwareKey(try #require(Base64URL.decode("ya-p2EW6dRZrXCFXZ7HWk05Qw9s26JsSe4piKxIPZyE")))
    }

    private func enrolment(_ device: String? = nil) throws -> Enrolment {
        var options = EnrolmentOptions()
        options.pushToken = try page.members("enrol claims")["dev_token"]?.string
        return Enrolment(try activation(), id: "e", key: key.stored, agreementKey: nil, options: options)
    }

    private func activation() throws -> Activation {
        let uri = try #require(page.text.split(separator: "\n").first { $0.hasPrefix("twoefay://enrol?") })
        return try Activation(String(uri))
    }

    private func time(_ name: String) throws -> Timestamp {
        Timestamp(seconds: try #require(try page.members("\(name) claims")["iat"]?.integer))
    }

    private func device(_ name: String) throws -> String {
        try #require(try page.members("\(name) header")["kid"]?.string)
    }

    /// Compares a statement of this package with that of the page, and verifies the page's
    /// signature.
    private func expect(
        _ name: String, _ type: String, _ claims: JSONObject, by member: (String, JSONValue)? = nil,
        key: SoftwareKey? = nil
    ) throws {
        let key = key ?? self.key
        let member = try member ?? ("kid", .string(try device(name)))
        let own = try JWS.sign(type, member, claims, by: key)
        let (input, signature) = try page.signed(name)
        #expect(own.hasPrefix(input + "."), "\(name)")
        let verifier = VerificationKey(key.publicKey)
        #expect(cryptography.isValid(signature, of: Array(input.utf8), by: verifier), "\(name)")
        #expect(try #require(JWS(own)).isSigned(as: type, by: verifier, cryptography), "\(name)")
    }

    @Test func activationHasAllParameters() throws {
        let activation = try activation()
        #expect(activation.relay.text == "https://login.example.com:8080" && activation.website == "shop")
        #expect(activation.relay.host == "login.example.com" && activation.relay.port == 8080)
        #expect(activation.websiteKey == Array(0...31))
    }

    @Test func keyAndThumbprint() throws {
        #expect(try page("jwk") == key.publicKey.jwk.text)
        #expect(try page("thumbprint") == key.publicKey.thumbprint(cryptography))
        #expect(P256PublicKey(jwk: try page.members("jwk")) == key.publicKey)
    }

    @Test func proofAndBinding() throws {
        let enrolment = try enrolment()
        let claims = Statement.proof(enrolment, code: try activationCode(), agreement: nil, at: try time("enrol"))
        try expect("enrol", "twoefay-enrol+jwt", claims, by: ("jwk", .object(key.publicKey.jwk)))
        let binding = JWS.authenticate(
            "twoefay-binding+jwt", Statement.binding(enrolment, key: key.publicKey, agreement: nil),
            key: try #require(try activation().websiteKey), cryptography)
        #expect(try binding == page("binding jws"))
        _ = try page.signed("binding")
    }

    private func activationCode() throws -> String { try activation().code }

    @Test func decision() throws {
        let context = Array(try page("context").utf8)
        #expect(try Base64URL.decode(page("context base64url")) == context)
        #expect(try Base64URL.encode(context) == page("context base64url"))
        let claims = try page.members("decision claims")
        var entry: JSONObject = [
            "context": .string(Base64URL.encode(context)), "expires_at": "2026-11-21T10:09:30.120Z",
        ]
        for name in ["challenge", "nonce"] { entry[name] = claims[name] }
        let challenge = try Challenge(
            .object(entry), website: "shop", now: try #require(Timestamp(rfc3339: "2026-11-21T10:04:31.002Z")))
        #expect(challenge.timeLeft == 299_118 && challenge.context.details[1].value == "Zoë Müller")
        #expect(challenge.context.numberDigits == 2 && challenge.context.action == "pay")
        let answer = Answer(.approve(number: "47"), verification: .biometric)
        try expect(
            "decision", "twoefay-decision+jwt",
            Statement.decision(
                answer, to: challenge, for: try enrolment().audience, at: try time("decision"), cryptography))
    }

    @Test func pin() throws {
        let secret = try #require(PINSecret(Array(0...31)))
        let pin = try secret.key(of: "2580", for: .pin, cryptography)
        #expect(try pin.publicKey.jwk.text == page("pin jwk"))
        #expect(try secret.key(of: "314159265358", for: .puk, cryptography).publicKey.jwk.text == page("puk jwk"))
        let claims = try page.members("pin claims")
        let new = try #require(claims["pin"]?.object.flatMap { P256PublicKey(jwk: $0) })
        try expect(
            "pin", "twoefay-pin+jwt",
            Statement.pin(
                "change", version: 2, pin: new, puk: nil, unlockCode: nil, for: try enrolment().audience,
                at: try time("pin")))
        let signature = try #require(Base64URL.decode(try page("pin signature")))
        let input = Array(try page.signed("pin").input.utf8)
        #expect(cryptography.isValid(signature, of: input, by: VerificationKey(pin.publicKey)))
    }

    @Test func dpop() throws {
        let claims = try page.members("dpop claims")
        try expect(
            "dpop", "dpop+jwt",
            Statement.dpop(
                "POST", "https://login.example.com:8080/pending", id: try #require(claims["jti"]?.string),
                nonce: claims["nonce"]?.string, at: try time("dpop")),
            by: ("jwk", .object(key.publicKey.jwk)))
    }

    @Test func ownData() throws {
        let audience = try enrolment().audience
        let token = try #require(try page.members("token claims")["dev_token"]?.string)
        try expect("token", "twoefay-token+jwt", Statement.pushToken(token, for: audience, at: try time("token")))
        var status = PhoneStatus()
        (status.os, status.osVersion, status.patchLevel) = ("Android", "16", 202_610)
        (status.appVersion, status.model, status.battery) = ("3.2.1", "Pixel 10", 81)
        (status.hasScreenLock, status.isRooted) = (true, false)
        try expect("status", "twoefay-status+jwt", Statement.status(status, for: audience, at: try time("status")))
    }

    @Test func secretOfCodes() throws {
        // The private key of Bob in RFC 7518, appendix C.
        let bob = try SoftwareKey(try #require(Base64URL.decode("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw")))
        try expect(
            "secret", "twoefay-secret+jwt",
            Statement.secret(agreement: bob.publicKey, for: try enrolment().audience, at: try time("secret")))
    }

    @Test func documents() throws {
        let audience = try enrolment().audience
        try expect(
            "certificate", "twoefay-certificate+jwt",
            Statement.certificate(
                tag: "sign", request: "request", for: audience, at: try time("certificate"), cryptography))
        let bob = try SoftwareKey(try #require(Base64URL.decode("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw")))
        try expect(
            "document", "twoefay-document+jwt",
            Statement.document(
                tag: "sign", label: "Contract 7", digest: cryptography.sha256(Array("The contract.\n".utf8)),
                for: audience, at: try time("document")),
            key: bob)
    }

    /// The page signs these with the phone's example key in place of the relay's.
    @Test func statementsOfTheRelay() throws {
        for (name, type) in [("time", "twoefay-time+jwt"), ("message", "twoefay-message+jwt")] {
            let (input, signature) = try page.signed(name)
            let jws = try #require(JWS(try page("\(name) jws")))
            #expect(jws.input == Array(input.utf8) && jws.signature == signature)
            #expect(jws.isSigned(as: type, by: VerificationKey(key.publicKey), cryptography), "\(name)")
            #expect(!jws.isSigned(as: "twoefay-farewell+jwt", by: VerificationKey(key.publicKey), cryptography))
        }
        let notice = try Notice(
            "5b1d8e0f7a264c3b9e8d1c0f2a3b4c5d", try #require(JWS(try page("message jws"))), for: try enrolment())
        #expect(notice.title == "Maintenance" && notice.author == .website && notice.text.hasSuffix("\nThe Shop"))
    }

    @Test func statementAboutPins() throws {
        _ = try page.signed("pins")
        // The phone has the pin of the example key, which signs the statement.
        let pin = cryptography.sha256(key.publicKey.info)
        var uri = "twoefay://enrol?relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token=t&code=c&pin="
        uri += Base64URL.encode(pin)
        let enrolment = Enrolment(
            try Activation(uri), id: "e", key: [], agreementKey: nil, options: EnrolmentOptions())
        let statement = PinStatement(
            try page("pins jws"), for: enrolment, at: Timestamp(seconds: 1_795_341_900), cryptography)
        #expect(statement?.sequence == 1_795_341_887 && statement?.pins == [pin, Array(0...31)])
    }

    /// The names of the examples that this package has no statement for: none but these.
    @Test func everyExampleIsRead() throws {
        let statements = [
            "enrol", "binding", "decision", "pin", "dpop", "message", "time", "pins", "token", "status", "secret",
            "certificate", "document",
        ]
        var read = Set(statements.flatMap { ["\($0) header", "\($0) claims", "\($0) jws"] })
        read.formUnion(["jwk", "thumbprint", "context", "context base64url", "pin jwk", "puk jwk", "pin signature"])
        let others: Set = [
            // A refusal: RefusalTests. The pushes: StringsTests. Those of the web are not for iOS.
            "problem", "push payload", "minimal push payload", "web push payload", "minimal web push payload",
        ]
        #expect(page.names == read.union(others))
    }

    @Test func refusalIsRead() throws {
        let reply = RelayReply(
            status: 400, fields: ["retry-after": "7"], body: Array(try page("problem").utf8), certificate: [])
        let refusal = RelayAnswer(reply).refusal
        #expect(refusal.code == "invalid" && refusal.retryAfter == 7 && refusal.says("format", of: "platform"))
        #expect(throws: PhoneError.self) { try RelayAnswer(reply).accepted() }
    }
}
