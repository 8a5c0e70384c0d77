import LinuxPhone
import Testing
import TwoefayPhone

/// Statements of the relay that a phone must believe, and those that it must not.
struct StatementTests {
    private let cryptography = OpenSSLCryptography()
    private let origin = RelayOrigin("https://login.example.com:8080")
    private let nonce = "AAECAwQFBgcICQoLDA0ODw"

    private func time(
        _ certificate: TestCertificate, roundTrip: Int64 = 2000, algorithm: String? = nil, naming other: [UInt8]? = nil,
        type: String = "twoefay-time+jwt", by reader: [UInt8]? = nil, _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> SignedTime {
        var claims: JSONObject = [
            "v": 1, "aud": "https://login.example.com:8080", "nonce": .string(nonce),
            "time": "2026-11-21T10:04:47.250Z",
        ]
        change(&claims)
        let statement = try certificate.statement(type, claims, algorithm: algorithm, naming: other)
        return try SignedTime(
            statement, by: reader ?? certificate.der, origin: try #require(origin), nonce: nonce,
            sent: try #require(Timestamp(rfc3339: "2026-11-21T10:00:00.000Z")), roundTrip: roundTrip, cryptography)
    }

    @Test(arguments: TestCertificate.Kind.allCases) func timeIsTakenAtTheMiddleOfTheRoundTrip(
        kind: TestCertificate.Kind
    ) throws {
        let certificate = try TestCertificate(kind)
        let signed = try time(certificate)
        #expect(signed.offset == 4 * 60_000 + 46_250 && signed.uncertainty == 1000)
        // The algorithm is that of the key.
        for algorithm in ["none", "HS256", kind == .p256 ? "ES384" : "ES256"] {
            #expect(throws: PhoneError.self) { try time(certificate, algorithm: algorithm) }
        }
        #expect(throws: PhoneError.self) { try time(certificate, roundTrip: 10_001) }
        #expect(throws: PhoneError.self) { try time(certificate, type: "twoefay-message+jwt") }
        #expect(throws: PhoneError.self) { try time(certificate, naming: [1]) }
        let other = try TestCertificate(kind)
        #expect(throws: PhoneError.self) { try time(certificate, by: other.der) }
        #expect(throws: PhoneError.self) { try time(certificate, naming: other.der, by: other.der) }
        for (name, value) in [("v", 2), ("aud", "https://login.example.com"), ("nonce", "x"), ("time", "now")]
            as [(String, JSONValue)]
        {
            #expect(throws: PhoneError.self, "\(name)") { try time(certificate) { $0[name] = value } }
        }
    }

    @Test(arguments: TestCertificate.Kind.allCases) func certificateIsRead(kind: TestCertificate.Kind) throws {
        let certificate = try TestCertificate(kind)
        let parsed = try #require(Certificate(der: certificate.der))
        #expect(try parsed.keyInfo == certificate.keyInfo())
        #expect(abs(parsed.notBefore.milliseconds - SystemClock().now().milliseconds) < 600_000)
        #expect(VerificationKey(info: parsed.keyInfo) != nil)
        for count in stride(from: 0, to: certificate.der.count, by: 7) {
            #expect(Certificate(der: Array(certificate.der.prefix(count))) == nil)
        }
    }

    /// The relay's own certificate is never the authority, and the chain's order does not matter.
    @Test func pinNamesAnAuthorityOfTheChain() throws {
        let (own, one, two) = (
            try TestCertificate(.p256), try TestCertificate(.p256, name: "a"), try TestCertificate(.rsa, name: "b")
        )
        let pins = try [own, one, two].map { cryptography.sha256(try $0.keyInfo()) }
        func anchor(_ chain: [TestCertificate], _ pins: [[UInt8]]) -> [UInt8]? {
            PinRule.anchor(in: chain.map(\.der), pins: pins, cryptography)?.der
        }
        #expect(anchor([own, one, two], [pins[1]]) == one.der && anchor([own, one, two], [pins[2]]) == two.der)
        #expect(anchor([own, two], [pins[1], pins[2]]) == two.der)
        #expect(anchor([own, one, two], [pins[0]]) == nil && anchor([own, one], [pins[2]]) == nil)
        #expect(anchor([], pins) == nil && anchor([own], pins) == nil && anchor([own, one], []) == nil)
        #expect(PinRule.anchor(in: [own.der, [1, 2], one.der], pins: [pins[1]], cryptography)?.der == one.der)
    }

    private func enrolment(_ pins: [[UInt8]]) throws -> Enrolment {
        var stored: JSONObject = [
            "v": 1, "id": "e", "relay": "https://login.example.com:8080", "website": "shop", "token": "ab12",
            "key": "AA",
            "platform": "ios", "environment": "sandbox", "device": "d1", "pins_seq": 7,
        ]
        stored["pins"] = .array(pins.map { .string(Base64URL.encode($0)) })
        return try Enrolment(stored: stored.bytes)
    }

    @Test func pinsAreStatedByAPinnedAuthorityOnly() throws {
        let (key, other) = (try SoftwareKey(), try SoftwareKey())
        let (pin, next, third) = (
            cryptography.sha256(key.publicKey.info), cryptography.sha256(other.publicKey.info), [UInt8](0...31)
        )
        func read(
            by signer: SoftwareKey? = nil, type: String = "twoefay-pins+jwt", pins: [[UInt8]]? = nil,
            phone: [[UInt8]]? = nil, _ change: (inout JSONObject) -> Void = { _ in }
        ) throws -> [[UInt8]]? {
            let signer = signer ?? key
            var claims: JSONObject = [
                "v": 1, "aud": "https://login.example.com:8080", "seq": 8, "iat": 1000, "exp": 2000,
            ]
            claims["pins"] = .array((pins ?? [pin, next]).map { .string(Base64URL.encode($0)) })
            change(&claims)
            let text = try JWS.sign(type, ("jwk", .object(key.publicKey.jwk)), claims, by: signer)
            return PinStatement(
                text, for: try enrolment(phone ?? [pin]), at: Timestamp(seconds: 1500), cryptography)?.pins
        }
        #expect(try read() == [pin, next])
        #expect(try read(pins: [pin]) == [pin])
        #expect(try read(phone: [next, pin]) == [pin, next])
        #expect(try read(by: other) == nil)
        #expect(try read(type: "twoefay-time+jwt") == nil)
        #expect(try read(phone: [next]) == nil)
        #expect(try read(pins: [next]) == nil)
        #expect(try read(pins: [pin, pin]) == nil)
        #expect(try read(pins: []) == nil)
        #expect(try read(pins: [pin, next, third]) == nil)
        #expect(try read(pins: [pin, [1]]) == nil)
        for (name, value) in [
            ("v", 2), ("aud", "https://login.example.com"), ("seq", 7), ("exp", 1500), ("seq", "8"), ("pins", "x"),
        ] as [(String, JSONValue)] {
            #expect(try read { $0[name] = value } == nil, "\(name)")
        }
    }

    @Test func storedEnrolmentIsReadAgain() throws {
        let enrolment = try enrolment([[UInt8](0...31)])
        #expect(try Enrolment(stored: enrolment.stored) == enrolment)
        #expect(enrolment.device == "d1")
        for name in ["v", "id", "relay", "website", "token", "key", "pins", "platform", "environment", "device"] {
            var object = try #require(JSONReader.object(enrolment.stored))
            object[name] = nil
            #expect(throws: Enrolment.Malformed.self, "\(name)") { try Enrolment(stored: object.bytes) }
        }
    }

    /// The example of RFC 7518, appendix C, has these keys; the plaintext is sealed here.
    @Test func secretOfCodesIsForOnePhone() throws {
        let sealed = try SealedSecret()
        func open(
            factor: String = "f1", audience: String = "https://login.example.com:8080#shop", device: String = "d1",
            key: SoftwareKey? = nil, text: String? = nil
        ) -> PhoneCodes? {
            PhoneCodes(
                sealed: text ?? sealed.text, factor: factor, audience: audience, device: device, key: key ?? sealed.key,
                cryptography)
        }
        let codes = try #require(open())
        #expect(codes.digits == 6 && codes.period == 30 && codes.factor == "f1")
        #expect(open(factor: "f2") == nil && open(device: "d2") == nil)
        #expect(open(audience: "https://login.example.com:8080#bank") == nil)
        #expect(try open(key: SoftwareKey()) == nil)
        let parts = sealed.text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        for index in [0, 2, 3, 4] {
            var wrong = parts
            wrong[index] = String(wrong[index].dropLast(2)) + (wrong[index].hasSuffix("AA") ? "BA" : "AA")
            #expect(open(text: wrong.joined(separator: ".")) == nil, "\(index)")
        }
    }
}
