import Bytes
import Crypto
import JSON
import Testing

@Suite struct JWSTests {
    private let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    @Test("RFC 7515 A.3") func es256VerifiesRFC7515Example() throws {
        let key = try P256PublicKey(jwk: try JSONReader.read(Array(JWKTests.rfc7515.utf8)))
        let object = try JWS.parse(
            "eyJhbGciOiJFUzI1NiJ9.\(claims)."
                + "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
        #expect(object.verify(key))
        #expect(object.header == ["alg": "ES256"])
        #expect(try JSONReader.read(object.payload).object?["iss"] == "joe")
        let scalar = try #require(Base64URL.decode("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"))
        #expect(try P256PrivateKey(scalar: Secret(scalar)).publicKey == key)
    }

    @Test("RFC 7515 A.1") func hs256VerifiesRFC7515Example() throws {
        let secret = Secret(
            try #require(
                Base64URL.decode(
                    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")))
        let text =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(claims).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        let object = try JWS.parse(text, algorithm: .hs256)
        #expect(object.verify(secret))
        #expect(object.type == "JWT")
        #expect(!object.verify(Secret([1])))
        #expect(throws: JWSError.algorithm) { try JWS.parse(text) }
    }

    @Test func signedJWSParses() throws {
        let key = try P256PrivateKey.generate()
        let text = try JWS.sign(
            header: ["alg": "none", "typ": "twoefay-decision+jwt", "kid": "d1"], payload: [1, 2, 3], key: key)
        let object = try JWS.parse(text)
        #expect(object.header.names == ["alg", "typ", "kid"])
        #expect(object.header["alg"] == "ES256")
        #expect(object.type == "twoefay-decision+jwt")
        #expect(object.keyID == "d1")
        #expect(object.payload == [1, 2, 3])
        #expect(object.verify(key.publicKey))
        #expect(!object.verify(try P256PrivateKey.generate().publicKey))
        #expect(!object.verify(Secret(key.publicKey.x963)))
        let sealed = JWS.sign(header: ["typ": "b"], payload: [], secret: Secret([5]))
        #expect(try JWS.parse(sealed, algorithm: .hs256).verify(Secret([5])))
    }

    @Test("Any changed character is detected") func changedJWSIsRefused() throws {
        let key = try P256PrivateKey.generate()
        let text = Array(try JWS.sign(header: ["typ": "x"], payload: Array("{}".utf8), key: key).utf8)
        for at in text.indices {
            for replacement in [UInt8(ascii: "A"), UInt8(ascii: "."), UInt8(ascii: "z")] where text[at] != replacement {
                var changed = text
                changed[at] = replacement
                let object = try? JWS.parse(String(decoding: changed, as: UTF8.self))
                #expect(object?.verify(key.publicKey) != true)
            }
        }
    }

    @Test(
        "Headers with another algorithm, duplicate members or unknown extensions",
        arguments: [
            (#"{"alg":"none"}"#, JWSError.algorithm), (#"{"alg":"HS256"}"#, .algorithm),
            (#"{"alg":"es256"}"#, .algorithm),
            (#"{"alg":["ES256"]}"#, .algorithm), (#"{}"#, .algorithm), (#"[]"#, .header(.notAnObject)),
            (#"{"alg":"ES256","crit":["exp"]}"#, .header(.notUnderstood("crit"))),
            (#"{"alg":"ES256","b64":true}"#, .header(.notUnderstood("b64"))),
            (#"{"alg":"none","alg":"ES256"}"#, .header(.json(JSONError(offset: 14, kind: .duplicateName("alg"))))),
            (#"{"alg":"ES256"} x"#, .header(.json(JSONError(offset: 16, kind: .trailingBytes)))),
        ])
    func malformedHeaderIsRefused(header: String, error: JWSError) {
        let signature = Base64URL.encode([UInt8](repeating: 1, count: 64))
        #expect(throws: error) { try JWS.parse("\(Base64URL.encode(Array(header.utf8))).e30.\(signature)") }
    }

    @Test(arguments: [
        "", ".", "..", "...", "a.b", "e30.e30", "e30.e30.e30.e30", "e30=.e30.e30", "e30.e3.e30", "é.e30.e30",
    ])
    func jwsWithoutThreePartsIsRefused(text: String) {
        #expect(throws: JWSError.self) { try JWS.parse(text) }
    }

    @Test func signatureOfWrongLengthIsRefused() {
        let header = Base64URL.encode(Array(#"{"alg":"ES256"}"#.utf8))
        for count in [0, 32, 63, 65, 70, 71, 72] {
            let signature = Base64URL.encode([UInt8](repeating: 0x30, count: count))
            #expect(throws: JWSError.signatureLength) { try JWS.parse("\(header).e30.\(signature)") }
        }
    }

    @Test func oversizedJWSIsRefusedUnread() {
        #expect(throws: JWSError.tooLong) { try JWS.parse(String(repeating: "e", count: 20_000)) }
        #expect(throws: JWSError.tooLong) { try JWS.parse("e30.e30.e30", maxBytes: 10) }
    }
}
