/// Reads the elements of DER one after the other: as much as certificates and signatures need.
package struct DER {
    package enum Tag {
        package static let integer: UInt8 = 0x02
        package static let bitString: UInt8 = 0x03
        package static let objectIdentifier: UInt8 = 0x06
        package static let sequence: UInt8 = 0x30
        package static let version: UInt8 = 0xa0
        package static let utcTime: UInt8 = 0x17
        package static let generalizedTime: UInt8 = 0x18
    }

    package struct Element {
        package let tag: UInt8
        package let content: ArraySlice<UInt8>
        /// The element with its tag and length.
        package let whole: ArraySlice<UInt8>

        /// The elements inside of this one.
        package var inside: DER { DER(content) }
    }

    private var rest: ArraySlice<UInt8>

    package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }
    package init(_ bytes: [UInt8]) { rest = bytes[...] }

    package var isAtEnd: Bool { rest.isEmpty }
    package var nextTag: UInt8? { rest.first }

    /// Reads the next element; nil if it is incomplete or has another tag.
    package mutating func read(_ tag: UInt8? = nil) -> Element? {
        guard rest.count >= 2, let found = rest.first, tag == nil || tag == found, found & 0x1f != 0x1f else {
            return nil
        }
        var at = rest.startIndex + 1
        var length = Int(rest[at])
        at += 1
        if length >= 0x80 {
            let count = length & 0x7f
            guard (1...3).contains(count), rest.endIndex - at >= count else { return nil }
            length = rest[at..<(at + count)].reduce(0) { $0 << 8 | Int($1) }
            guard length >= 0x80 else { return nil }
            at += count
        }
        guard rest.endIndex - at >= length else { return nil }
        let element = Element(tag: found, content: rest[at..<(at + length)], whole: rest[..<(at + length)])
        rest = rest[(at + length)...]
        return element
    }
}

/// The two forms of a signature by ECDSA: the sequence of ASN.1, and r and s (RFC 7518, 3.4).
/// `SecKeyCreateSignature` and Android return the first, and the protocol has the second.
public enum ECDSASignature {
    /// Returns r and s with `width` bytes each; nil if the bytes are no signature in DER.
    public static func raw(der: [UInt8], width: Int = 32) -> [UInt8]? {
        var outer = DER(der)
        guard let sequence = outer.read(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var inner = sequence.inside
        guard let r = inner.read(DER.Tag.integer), let s = inner.read(DER.Tag.integer), inner.isAtEnd else {
            return nil
        }
        var raw: [UInt8] = []
        for integer in [r.content, s.content] {
            // The highest bit is the sign.
            guard let first = integer.first, first < 0x80 else { return nil }
            let number = integer.drop { $0 == 0 }
            guard !number.isEmpty, number.count <= width else { return nil }
            raw += Array(repeating: 0, count: width - number.count) + number
        }
        return raw
    }

    /// Returns the form in ASN.1; nil if the bytes are not r and s.
    public static func der(raw: [UInt8]) -> [UInt8]? {
        guard !raw.isEmpty, raw.count % 2 == 0, raw.count <= 128 else { return nil }
        var content: [UInt8] = []
        for half in [raw.prefix(raw.count / 2), raw.suffix(raw.count / 2)] {
            var number = Array(half.drop { $0 == 0 })
            guard let first = number.first else { return nil }
            if first >= 0x80 { number.insert(0, at: 0) }
            content += [DER.Tag.integer, UInt8(number.count)] + number
        }
        return [DER.Tag.sequence] + (content.count < 0x80 ? [] : [0x81]) + [UInt8(content.count)] + content
    }
}
