import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// The worked examples of the PIN in docs/phones/device-protocol.md. Another program made them.
struct PINPageTests {
    private let page: ProtocolPageTests
    private let secret: PINSecret

    init() throws {
        page = try ProtocolPageTests()
        let line = page.page.split(separator: "\n").first {
            $0.hasPrefix("`") && $0.contains("`, these are the public")
        }
        let text = try #require(line).dropFirst().prefix { $0 != "`" }
        let bytes = try #require(Base64URL.decode(text))
        secret = try #require(PINSecret(bytes))
    }

    @Test func protocolPageKeysAreThoseOfTheDigits() throws {
        for (name, digits, purpose) in [("pin", "2580", .pin), ("puk", "314159265358", .puk)]
            as [(String, String, PINSecret.Purpose)]
        {
            #expect(page.page.contains("`\(digits)`"))
            let key = try secret.key(of: digits, for: purpose).publicKey
            #expect(try page.example("\(name) jwk") == JSONWriter.text(.object(key.jwk)))
        }
        // The same digits, for another purpose or with another secret, give another key.
        let other = try secret.key(of: "2580", for: .puk).publicKey
        #expect(try page.example("pin jwk") != JSONWriter.text(.object(other.jwk)))
        let elsewhere = try PINSecret().key(of: "2580", for: .pin).publicKey
        #expect(try page.example("pin jwk") != JSONWriter.text(.object(elsewhere.jwk)))
    }

    @Test func protocolPageStatementIsCorrect() throws {
        let input = try page.signed("pin")
        let claims = try page.members("pin claims")
        #expect(claims.names == ["v", "aud", "change", "version", "pin", "iat"])
        let (old, new) = (try secret.key(of: "2580", for: .pin), try secret.key(of: "0852", for: .pin))
        #expect(claims["pin"]?.object == new.publicKey.jwk)
        let enrolment = try page.enrolment().enrolment
        let device = try #require(try page.members("pin header")["kid"]?.string)
        let statement = try SignedStatement.pin(
            "change", version: 2, key: new.publicKey, pukKey: nil, of: enrolment, device: device,
            at: Timestamp(seconds: try #require(claims["iat"]?.integer)))
        #expect(page.unsigned(statement) == input)
        let signature = try #require(Base64URL.decode(try page.example("pin signature")))
        #expect(old.publicKey.verify(signature: signature, over: Array(input.utf8)))
        let own = try #require(Base64URL.decode(try SignedStatement.signature(over: statement, by: old)))
        #expect(old.publicKey.verify(signature: own, over: Array(input.utf8)))
    }

    @Test func newPUKHasTwelveDigits() {
        let puks = (0..<50).map { _ in PINSecret.newPUK() }
        #expect(puks.allSatisfy { PINSecret.isPUK($0) } && Set(puks).count == 50)
        #expect(Set(puks.joined()).count == 10)
        #expect(!PINSecret.isPIN("123") && PINSecret.isPIN("1234") && PINSecret.isPIN("123456789012"))
        #expect(!PINSecret.isPIN("1234567890123") && !PINSecret.isPIN("12a4") && !PINSecret.isPIN("١٢٣٤"))
    }
}
