import Bytes
import Testing

@Suite struct Base32Tests {
    @Test(
        "RFC 4648 §10",
        arguments: [
            ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ])
    func matchesRFC4648Vectors(plain: String, text: String) {
        #expect(Base32.encode(Array(plain.utf8)) == text)
        #expect(Base32.decode(text) == Array(plain.utf8))
        let padded = text + String(repeating: "=", count: (8 - text.count % 8) % 8)
        #expect(Base32.decode(padded) == Array(plain.utf8))
    }

    @Test func decodingIgnoresCaseAndSeparators() {
        #expect(Base32.decode("mzxw 6ytb-oi") == Array("foobar".utf8))
    }

    /// Invalid characters, impossible lengths, unused bits that are set, and padding in the middle.
    @Test(arguments: ["MZXW0", "MZXW1", "M", "MZX", "MZXW6Y", "MZ", "MY==MY", "mzxw6\n", "ﬀ"])
    func malformedBase32IsRefused(text: String) {
        #expect(Base32.decode(text) == nil)
    }
}
