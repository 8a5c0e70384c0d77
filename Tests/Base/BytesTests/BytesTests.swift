import Bytes
import Testing

@Suite struct TextEncodingTests {
    @Test(
        "RFC 4648 §10, without padding",
        arguments: [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ])
    func base64URLMatchesRFC4648Vectors(plain: String, text: String) {
        #expect(Base64URL.encode(Array(plain.utf8)) == text)
        #expect(Base64URL.decode(text) == Array(plain.utf8))
    }

    @Test func base64URLUsesItsOwnAlphabet() {
        #expect(Base64URL.encode([0xfb, 0xff, 0xfe]) == "-__-")
        #expect(Base64URL.decode("-__-") == [0xfb, 0xff, 0xfe])
    }

    @Test(
        "Only the canonical text of a value is accepted",
        arguments: ["Z", "Zg==", "Zh", "Zm9", "Zm+v", "Zm/v", "Zm9v\n", " Zm9v", "Zm9vé", "A"])
    func malformedBase64URLIsRefused(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test(
        "RFC 4648 §10",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ])
    func base64MatchesRFC4648Vectors(plain: String, text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == text)
        #expect(Base64.decode(text) == Array(plain.utf8))
    }

    @Test func base64UsesItsOwnAlphabet() {
        #expect(Base64.encode([0xfb, 0xff, 0xfe]) == "+//+")
        #expect(Base64.decode("+//+") == [0xfb, 0xff, 0xfe])
    }

    @Test(
        "Only the canonical text of a value is accepted",
        arguments: [
            "Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm9v=", "Zm9v====", "Zm-v", "Zm_v", "Zm9v\n", " Zm9v", "Zg=v",
            "=", "====", "Zm9vé",
        ])
    func malformedBase64IsRefused(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func everyLengthRoundTrips() {
        for length in 0..<100 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + length) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
            #expect(Hex.decode(Hex.encode(bytes)) == bytes)
        }
    }

    @Test func hexEncodesAndDecodes() {
        #expect(Hex.encode([0x00, 0x0f, 0xff]) == "000fff")
        #expect(Hex.decode("000fff") == [0x00, 0x0f, 0xff])
    }

    @Test(arguments: ["0", "0G", "FF", "0x", " 00", "００"])
    func malformedHexIsRefused(text: String) {
        #expect(Hex.decode(text) == nil)
    }
}

@Suite struct SameBytesTests {
    @Test(arguments: ["", "a", "shop", "a text that is longer than fifteen bytes", "ä🙂"])
    func textHasItsOwnBytes(text: String) {
        #expect(text.hasSameBytes(as: String(decoding: Array(text.utf8), as: UTF8.self)))
        #expect(!text.hasSameBytes(as: text + "x"))
        #expect(!(text + "x").hasSameBytes(as: text + "y"))
    }

    @Test(arguments: [("\u{212a}", "K"), ("\u{e9}", "e\u{301}"), ("a\u{323}\u{307}", "a\u{307}\u{323}")])
    func otherEncodingOfACharacterHasOtherBytes(a: String, b: String) {
        #expect(a == b)
        #expect(!a.hasSameBytes(as: b))
    }
}

@Suite struct SecretTests {
    @Test func printingASecretShowsNothing() {
        let secret = Secret(utf8: "hunter2")
        #expect("\(secret)" == "[secret]")
        #expect(String(reflecting: secret) == "[secret]")
        #expect("\([secret])" == "[[secret]]")
        var dumped = ""
        dump(secret, to: &dumped)
        #expect(!dumped.contains("104"))
        #expect(secret.reveal() == Array("hunter2".utf8))
        #expect(secret.count == 7)
    }

    @Test func matchesComparesWholeSecrets() {
        #expect(Secret.matches([1, 2, 3], [1, 2, 3]))
        #expect(Secret.matches([UInt8](), [UInt8]()))
        #expect(!Secret.matches([1, 2, 3], [1, 2, 4]))
        #expect(!Secret.matches([1, 2, 3], [0, 2, 3]))
        #expect(!Secret.matches([1, 2, 3], [1, 2]))
    }
}
