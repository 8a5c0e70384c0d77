/// The bytes that have a meaning in HTTP/1.1, and their classes.
enum Byte {
    static let tab: UInt8 = 9
    static let lineFeed: UInt8 = 10
    static let carriageReturn: UInt8 = 13
    static let space = UInt8(ascii: " ")
    static let hash = UInt8(ascii: "#")
    static let comma = UInt8(ascii: ",")
    static let dot = UInt8(ascii: ".")
    static let slash = UInt8(ascii: "/")
    static let zero = UInt8(ascii: "0")
    static let colon = UInt8(ascii: ":")
    static let semicolon = UInt8(ascii: ";")
    static let questionMark = UInt8(ascii: "?")

    static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }
    static func isDigit(_ byte: UInt8) -> Bool { byte &- zero < 10 }
    /// Whether a line may hold this byte: no control character but the tab.
    static func isOfLine(_ byte: UInt8) -> Bool { byte >= space && byte != 0x7f || byte == tab }
    /// Whether a target may hold this byte: visible ASCII without `#`, which begins a fragment.
    static func isOfTarget(_ byte: UInt8) -> Bool { byte > space && byte < 0x7f && byte != hash }

    /// The characters of a token (RFC 9110 §5.6.2), one bit for each.
    private static let tokens: (low: UInt64, high: UInt64) = {
        var bits: (low: UInt64, high: UInt64) = (0, 0)
        for byte in "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8 {
            if byte < 64 { bits.low |= 1 << UInt64(byte) } else { bits.high |= 1 << UInt64(byte - 64) }
        }
        return bits
    }()

    static func isToken(_ byte: UInt8) -> Bool {
        byte < 128 && (byte < 64 ? tokens.low : tokens.high) >> UInt64(byte & 63) & 1 == 1
    }

    static func lowered(_ byte: UInt8) -> UInt8 { byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte }

    /// Whether the bytes are this text, which is in lower case, with letters of either case.
    static func isSame(_ bytes: UnsafeBufferPointer<UInt8>, _ text: StaticString) -> Bool {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        return bytes.indices.allSatisfy { lowered(bytes[$0]) == text.utf8Start[$0] }
    }

    /// The value of decimal digits without a leading zero; nil for anything else, or if it does not
    /// fit. Others may read a leading zero as octal.
    static func number(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let first = bytes.first, bytes.count <= 18, first != zero || bytes.count == 1,
            bytes.allSatisfy(isDigit)
        else { return nil }
        return bytes.reduce(0) { $0 * 10 + Int($1 - zero) }
    }

    static func hexadecimal(_ byte: UInt8) -> Int? {
        switch byte {
        case zero...(zero + 9): Int(byte - zero)
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
