import GSM
import Testing

/// The encoding of GSM text. The expected values are from 3GPP 23.038, and from other projects' published encodings
/// of the same texts.
@Suite struct GSMTextTests {
    @Test func everyTableCharacterEncodes() {
        #expect(GSMText.encode("@£$¥èéùìòÇ\nØø\rÅå") == Array(0x00...0x0f))
        #expect(GSMText.encode("Δ_ΦΓΛΩΠΨΣΘΞ") == Array(0x10...0x1a))
        #expect(GSMText.encode("ÆæßÉ !\"#¤%&'()*+,-./") == Array(0x1c...0x2f))
        #expect(GSMText.encode("0123456789:;<=>?¡") == Array(0x30...0x40))
        #expect(
            GSMText.encode("AZÄÖÑÜ§¿azäöñüà") == [
                0x41, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, 0x60, 0x61, 0x7a, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f,
            ])
        #expect(
            GSMText.encode("\u{c}^{}\\[~]|€") == [
                0x1b, 0x0a, 0x1b, 0x14, 0x1b, 0x28, 0x1b, 0x29, 0x1b, 0x2f, 0x1b, 0x3c, 0x1b, 0x3d, 0x1b, 0x3e, 0x1b,
                0x40,
                0x1b, 0x65,
            ])
    }

    @Test func characterOutsideTheTablesIsReported() {
        for text in ["`", "ç", "á", "č", "–", "“", "\u{a0}", "\u{1b}", "\u{0}", "😀", "я", "e\u{302}"] {
            #expect(GSMText.encode("a\(text)b") == nil, "\(text)")
        }
        #expect(GSMText.missing(in: "“čaj” č – ok") == ["“", "č", "”", "–"])
        #expect(GSMText.missing(in: "code 123 €").isEmpty)
    }

    @Test func decomposedCharactersAreNormalised() {
        #expect(GSMText.encode("u\u{308}") == [0x7e])
        #expect(GSMText.encode("\u{212b}\u{2126}") == [0x0e, 0x15])
        #expect(GSMText.encode("a\r\nb") == [0x61, 0x0d, 0x0a, 0x62])
    }

    @Test(arguments: [
        ("hellohello", "E8329BFD4697D9EC37"),
        ("How are you?", "C8F71D14969741F977FD07"),
        ("Hello world", "C8329BFD06DDDF723619"),
        ("The quick fox jumps over the lazy dog", "54741914AFA7C76B90F98D07A9EB6DF81CF4B697E5203ABA0C6287F57910F97D06"),
    ])
    func septetPackingMatchesVectors(text: String, hex: String) throws {
        let septets = try #require(GSMText.encode(text))
        let packed = GSMText.pack(septets)
        let digits = packed.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }
        #expect(digits.joined().uppercased() == hex)
        #expect(GSMText.unpack(packed, count: septets.count) == septets)
        #expect(GSMText.decode(septets) == text)
    }

    @Test func septetPackingRoundTripsAtEveryLength() {
        for count in 0...200 {
            let septets = (0..<count).map { UInt8(($0 * 37 + count) % 128) }
            let packed = GSMText.pack(septets)
            #expect(packed.count == (count * 7 + 7) / 8)
            #expect(GSMText.unpack(packed, count: count) == septets)
            // No more septets than the bytes contain.
            #expect(GSMText.unpack(packed, count: 1000).prefix(count).elementsEqual(septets))
        }
        #expect(GSMText.unpack([0xff], count: 0).isEmpty)
    }

    @Test func receivedSeptetsAreDecodedPerTheStandard() {
        #expect(GSMText.decode([0x1b, 0x65, 0x41]) == "€A")
        // The extension table lacks the character, so the basic table applies.
        #expect(GSMText.decode([0x1b, 0x41]) == "A")
        #expect(GSMText.decode([0x1b, 0x1b, 0x41]) == " A")
        #expect(GSMText.decode([0x41, 0x1b]) == "A ")
        for septet in UInt8.min...UInt8.max { #expect(!GSMText.decode([septet]).isEmpty) }
    }
}
