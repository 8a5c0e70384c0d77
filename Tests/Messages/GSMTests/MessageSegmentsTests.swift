import GSM
import Testing

@Suite struct MessageSegmentsTests {
    private func expect(_ text: String, _ coding: TextCoding, units: Int, parts: Int) {
        let size = TextSize(text)
        #expect(size.coding == coding)
        #expect(size.units == units)
        #expect(size.parts == parts)
        #expect(MessageSegments(text).coding == coding)
        #expect(MessageSegments(text).parts.count == parts)
    }

    @Test func segmentCountFollowsTheTextLength() {
        expect("", .gsm7, units: 0, parts: 1)
        expect(String(repeating: "a", count: 160), .gsm7, units: 160, parts: 1)
        expect(String(repeating: "a", count: 161), .gsm7, units: 161, parts: 2)
        expect(String(repeating: "a", count: 306), .gsm7, units: 306, parts: 2)
        expect(String(repeating: "a", count: 307), .gsm7, units: 307, parts: 3)
        expect(String(repeating: "я", count: 70), .ucs2, units: 70, parts: 1)
        expect(String(repeating: "я", count: 71), .ucs2, units: 71, parts: 2)
        expect(String(repeating: "я", count: 134), .ucs2, units: 134, parts: 2)
        expect(String(repeating: "я", count: 135), .ucs2, units: 135, parts: 3)
        // Two septets each.
        expect(String(repeating: "€", count: 80), .gsm7, units: 160, parts: 1)
        expect(String(repeating: "€", count: 81), .gsm7, units: 162, parts: 2)
        // One other character changes the whole text to UCS-2.
        expect(String(repeating: "a", count: 159) + "č", .ucs2, units: 160, parts: 3)
        // Two units each.
        expect(String(repeating: "😀", count: 35), .ucs2, units: 70, parts: 1)
        expect(String(repeating: "😀", count: 36), .ucs2, units: 72, parts: 2)
    }

    @Test func escapeSequenceIsNotSplit() {
        let text = String(repeating: "a", count: 152) + "€" + String(repeating: "b", count: 100)
        let parts = MessageSegments(text).parts
        #expect(parts.map(\.count) == [152, 102])
        #expect(parts[1].prefix(2) == [0x1b, 0x65])
        // A third escape pair does not fit: 76 pairs fill 152 of 153 septets.
        let euros = MessageSegments(String(repeating: "€", count: 153))
        #expect(euros.parts.map(\.count) == [152, 152, 2])
        #expect(TextSize(String(repeating: "€", count: 153)).parts == 3)
    }

    @Test func surrogatePairIsNotSplit() {
        let text = String(repeating: "я", count: 66) + "😀" + "яяяя"
        let parts = MessageSegments(text).parts
        #expect(parts.map(\.count) == [132, 12])
        #expect(parts[1].prefix(4) == [0xd8, 0x3d, 0xde, 0x00])
        #expect(MessageSegments("я€").parts == [[0x04, 0x4f, 0x20, 0xac]])
    }

    @Test func segmentsRejoinToTheText() {
        for lead in 0..<160 {
            let gsm = String(repeating: "x", count: lead) + String(repeating: "[]", count: 120)
            #expect(MessageSegments(gsm).parts.flatMap { $0 } == GSMText.encode(gsm))
            #expect(MessageSegments(gsm).parts.allSatisfy { $0.count <= 153 && $0.last != 0x1b })
            let wide = String(repeating: "ж", count: lead) + String(repeating: "😀", count: 70)
            let octets = wide.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
            #expect(MessageSegments(wide).parts.flatMap { $0 } == octets)
            for part in MessageSegments(wide).parts {
                #expect(part.count <= 134)
                let units = stride(from: 0, to: part.count, by: 2).map { UInt16(part[$0]) << 8 | UInt16(part[$0 + 1]) }
                #expect(!String(decoding: units, as: UTF16.self).contains("\u{fffd}"))
            }
        }
    }
}
