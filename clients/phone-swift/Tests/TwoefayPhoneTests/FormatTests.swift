import Testing
import TwoefayPhone

struct FormatTests {
    @Test(arguments: [
        #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, "{", "[1,]", "{,}", "01", "-", "1.", "1e", "+1", "tru", "\"a",
        "\"\u{1}\"",
        #""\ud800""#, #""\udc00\ud800""#, #""\x""#, "1 2", "", "nul", #""\u00g0""#, "1e999", "\u{feff}1", "NaN",
    ])
    func noIJSON(text: String) { #expect(throws: JSONReader.Malformed.self) { try JSONReader.read(Array(text.utf8)) } }

    @Test func invalidUTF8IsRefused() {
        for bytes in [
            [0x22, 0xff, 0x22], [0x22, 0xc0, 0x80, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22],
            [0x22, 0xef, 0xb7, 0x90, 0x22],
        ] as [[UInt8]] {
            #expect(throws: JSONReader.Malformed.self) { try JSONReader.read(bytes) }
        }
        let deep = String(repeating: "[", count: 5000)
        #expect(throws: JSONReader.Malformed.self) { try JSONReader.read(Array(deep.utf8)) }
    }

    @Test func valuesAreRead() throws {
        let text = #" {"a" : [1, -0, 2.5e1, true, false, null, "\"\\\/\b\f\n\r\té\ud83d\ude00"] , "b":{}} "#
        let value = try JSONReader.read(Array(text.utf8))
        let list: [JSONValue] = [
            1, 0, .number(25), true, false, .null, "\"\\/\u{8}\u{c}\n\r\té😀",
        ]
        #expect(value == .object(["a": .array(list), "b": .object([:])]))
        #expect(try JSONReader.read(Array(value.text.utf8)) == value)
        #expect(JSONValue.string("a\"\\\n/é").text == #""a\"\\\u000a/é""#)
    }

    /// Swift takes K and the sign of Kelvin as equal.
    @Test func namesAreComparedByBytes() throws {
        let object = try #require(JSONReader.object(Array(#"{"\u212a":"K","K":"\u212a"}"#.utf8)))
        #expect(object.members.count == 2 && object.has("\u{212a}", "K") && !object.has("K", "K"))
    }

    @Test func base64URLHasOneForm() {
        #expect(Base64URL.decode("") == [] && Base64URL.decode("-_8") == [0xfb, 0xff])
        for text in ["A", "AB", "AA=", "A+/A", "AA\n", "AAAAA"] { #expect(Base64URL.decode(text) == nil, "\(text)") }
        for count in 0..<20 {
            let bytes = (0..<count).map { UInt8($0 * 37 & 255) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
        #expect(Base32.decode("MZXW6YTB") == Array("fooba".utf8) && Base32.decode("MZ1") == nil)
    }

    @Test func timesAreRead() {
        #expect(Timestamp(rfc3339: "1970-01-01T00:00:00Z")?.milliseconds == 0)
        #expect(Timestamp(rfc3339: "2026-11-21T10:04:30.120Z")?.milliseconds == 1_795_255_470_120)
        #expect(Timestamp(rfc3339: "2024-02-29T00:00:00.5Z")?.milliseconds == 1_709_164_800_500)
        #expect(Timestamp(httpDate: "Sat, 21 Nov 2026 10:04:30 GMT")?.milliseconds == 1_795_255_470_000)
        for text in [
            "", "2026-11-21", "2026-11-21T10:04:30", "2026-13-21T10:04:30Z", "2026-11-21T24:04:30Z",
            "x026-11-21T10:04:30Z",
        ] {
            #expect(Timestamp(rfc3339: text) == nil, "\(text)")
        }
    }

    @Test func signaturesChangeTheirForm() {
        let small: [UInt8] = Array(repeating: 0, count: 31) + [1]
        let large: [UInt8] = Array(repeating: 0xff, count: 32)
        let der = ECDSASignature.der(raw: small + large)
        #expect(der == [0x30, 0x26, 2, 1, 1, 2, 0x21, 0] + large)
        #expect(ECDSASignature.raw(der: der ?? []) == small + large)
        let three: [UInt8] = Array(repeating: 0x80, count: 96)
        #expect(ECDSASignature.der(raw: three).flatMap { ECDSASignature.raw(der: $0, width: 48) } == three)
        let wrong: [[UInt8]] = [
            [], [0x30], [0x30, 3, 2, 1, 1], [0x30, 6, 2, 1, 0x81, 2, 1, 1], [0x30, 6, 2, 1, 1, 2, 1, 0],
            [0x30, 6, 2, 1, 1, 2, 1, 1, 0], [0x30, 0x80, 2, 1, 1, 2, 1, 1],
            [0x30, 0x27, 2, 1, 1, 2, 0x22, 1, 0] + large,
        ]
        for bytes in wrong { #expect(ECDSASignature.raw(der: bytes) == nil, "\(bytes)") }
        #expect(ECDSASignature.der(raw: Array(repeating: 0, count: 64)) == nil)
    }
}
