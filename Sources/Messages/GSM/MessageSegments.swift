/// How the characters of a text message are written.
public enum TextCoding: String, Sendable, Equatable {
    /// Seven bits a character.
    case gsm7
    /// UTF-16; what lies beyond its first plane takes two units, and phones show it all the same.
    case ucs2

    /// What fits into a message that stands alone.
    var whole: Int { self == .gsm7 ? 160 : 70 }
    /// What fits into a part of a longer one, beside the six octets that say which part it is.
    var part: Int { self == .gsm7 ? 153 : 67 }
}

/// How long a text is, as text messages. The gateway is paid by the part.
public struct TextSize: Sendable, Equatable {
    public let coding: TextCoding
    /// Septets, or units of UTF-16.
    public let units: Int
    /// At least one: an empty text is a message too.
    public let parts: Int

    public init(_ text: String) {
        let cut = SegmentBoundary(text)
        coding = cut.coding
        units = cut.units.count
        parts = cut.ranges.count
    }
}

/// A text cut into as many messages as it takes.
public struct MessageSegments: Sendable, Equatable {
    public let coding: TextCoding
    /// Septets, one a byte, or UTF-16 with the high byte first. What says which part it is does not stand in them.
    public let parts: [[UInt8]]

    public init(_ text: String) {
        let cut = SegmentBoundary(text)
        coding = cut.coding
        parts = cut.ranges.map { range in
            switch cut.coding {
            case .gsm7: cut.units[range].map { UInt8(truncatingIfNeeded: $0) }
            case .ucs2: cut.units[range].flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
            }
        }
    }
}

/// Where a text is cut: nothing that means something only together is parted.
private struct SegmentBoundary {
    let coding: TextCoding
    let units: [UInt16]
    let ranges: [Range<Int>]

    init(_ text: String) {
        if let septets = GSMText.encode(text) {
            coding = .gsm7
            units = septets.map(UInt16.init)
        } else {
            coding = .ucs2
            units = Array(text.utf16)
        }
        guard units.count > coding.whole else {
            ranges = [0..<units.count]
            return
        }
        var ranges: [Range<Int>] = []
        var start = 0
        while start < units.count {
            var end = min(start + coding.part, units.count)
            if end < units.count, Self.leads(units[end - 1], coding) { end -= 1 }
            ranges.append(start..<end)
            start = end
        }
        self.ranges = ranges
    }

    /// Whether what follows belongs to it.
    private static func leads(_ unit: UInt16, _ coding: TextCoding) -> Bool {
        switch coding {
        case .gsm7: unit == UInt16(GSMText.escape)
        case .ucs2: UTF16.isLeadSurrogate(unit)
        }
    }
}
