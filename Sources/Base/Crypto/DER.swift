import World

/// Encodes DER for certificates and signatures. OpenSSL does the decoding.
enum DER {
    static func value(_ tag: UInt8, _ content: some Collection<UInt8>) -> [UInt8] {
        let count = content.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 10)
        bytes.append(tag)
        if count < 0x80 {
            bytes.append(UInt8(count))
        } else {
            let digits = withUnsafeBytes(of: UInt64(count).bigEndian) { Array($0.drop { $0 == 0 }) }
            bytes.append(0x80 | UInt8(digits.count))
            bytes += digits
        }
        bytes.append(contentsOf: content)
        return bytes
    }

    static func sequence(_ parts: [UInt8]...) -> [UInt8] { value(0x30, parts.flatMap { $0 }) }
    static func set(_ part: [UInt8]) -> [UInt8] { value(0x31, part) }
    static func octets(_ content: some Collection<UInt8>) -> [UInt8] { value(0x04, content) }
    static func utf8(_ text: String) -> [UInt8] { value(0x0c, Array(text.utf8)) }
    static func bits(_ content: [UInt8], unused: UInt8 = 0) -> [UInt8] { value(0x03, [unused] + content) }
    static func boolean(_ flag: Bool) -> [UInt8] { value(0x01, [flag ? 0xff : 0]) }
    /// An object identifier, from its encoded content bytes.
    static func identifier(_ content: [UInt8]) -> [UInt8] { value(0x06, content) }
    /// `[tag] { part }`
    static func explicit(_ tag: UInt8, _ part: [UInt8]) -> [UInt8] { value(0xa0 | tag, part) }

    /// A non-negative number, given with the highest byte first, in the shortest form.
    static func integer(_ magnitude: some Collection<UInt8>) -> [UInt8] {
        let digits = magnitude.drop { $0 == 0 }
        guard let first = digits.first else { return value(0x02, [0]) }
        return first < 0x80 ? value(0x02, digits) : value(0x02, [0] + digits)
    }

    /// A time as RFC 5280 §4.1.2.5 requires: two-digit years until 2049, and no fraction.
    static func time(_ moment: Timestamp) -> [UInt8] {
        let digits = moment.rfc3339.utf8.prefix(19).filter { (0x30...0x39).contains($0) }
        let isShort = moment >= firstShort && moment < firstLong
        return isShort
            ? value(0x17, digits.dropFirst(2) + [UInt8(ascii: "Z")]) : value(0x18, digits + [UInt8(ascii: "Z")])
    }

    private static let firstShort = Timestamp(seconds: -631_152_000)  // 1950
    private static let firstLong = Timestamp(seconds: 2_524_608_000)  // 2050
}
