/// The encoding of the characters of a text message.
public enum TextCoding: String, Sendable, Equatable {
    /// Seven bits for each character.
    case gsm7
    /// UTF-16; a character outside the basic plane takes two units, and phones display it
    /// nonetheless.
    case ucs2

    /// The number of units in a message of a single segment.
    var whole: Int { self == .gsm7 ? 160 : 70 }
    /// The number of units in a segment of a longer text, besides the six octets of its header.
    var part: Int { self == .gsm7 ? 153 : 67 }
}

/// The size of a text as text messages. The gateway charges by segment.
public struct TextSize: Sendable, Equatable {
    public let coding: TextCoding
    /// The number of septets or UTF-16 units.
    public let units: Int
    /// The number of segments, at least one: an empty text is a message too.
    public let parts: Int

    public init(_ text: String) {
        let cut = SegmentBoundary(text)
        coding = cut.coding
        units = cut.units.count
        parts = cut.ranges.count
    }
}

/// A text divided into SMS segments.
public struct MessageSegments: Sendable, Equatable {
    public let coding: TextCoding
    /// The segments: septets, one in each byte, or UTF-16 with the high byte first. They do not
    /// include the header.
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

/// The division of a text into segments. Neither an escape pair nor a surrogate pair is divided.
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

    /// Returns whether the next unit belongs to this one.
    private static func leads(_ unit: UInt16, _ coding: TextCoding) -> Bool {
        switch coding {
        case .gsm7: unit == UInt16(GSMText.escape)
        case .ucs2: UTF16.isLeadSurrogate(unit)
        }
    }
}
