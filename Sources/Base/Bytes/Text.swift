import Glibc

/// Lower-case hexadecimal text.
public enum Hex {
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        // Converted to an array, here and below, because generic code is not specialised for other
        // modules and costs a call per byte.
        Array(bytes).withUnsafeBytes { encode($0) }
    }

    /// Encodes bytes that are in memory without a copy.
    public static func encode(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
            var at = 0
            for byte in bytes {
                buffer[at] = digit(byte >> 4)
                buffer[at + 1] = digit(byte & 15)
                at += 2
            }
            return at
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    /// Decodes text. Returns nil for an odd length, an upper-case letter, or another character. So
    /// each value has exactly one text.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for at in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(of: digits[at]), let low = value(of: digits[at + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// The value of a digit that `encode` writes; nil for another character.
    public static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}

/// Base64url without padding (RFC 4648 §5).
public enum Base64URL {
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        let bytes = Array(bytes)
        let alphabet = alphabet.utf8Start
        return String(unsafeUninitializedCapacity: (bytes.count * 4 + 2) / 3) { text in
            var at = 0
            func append(_ held: UInt32, letters: Int) {
                for place in 0..<letters {
                    text[at] = alphabet[Int(held >> (18 - 6 * UInt32(place)) & 63)]
                    at += 1
                }
            }
            let whole = bytes.count - bytes.count % 3
            for from in stride(from: 0, to: whole, by: 3) {
                append(
                    UInt32(bytes[from]) << 16 | UInt32(bytes[from + 1]) << 8 | UInt32(bytes[from + 2]), letters: 4)
            }
            switch bytes.count - whole {
            case 1: append(UInt32(bytes[whole]) << 16, letters: 2)
            case 2: append(UInt32(bytes[whole]) << 16 | UInt32(bytes[whole + 1]) << 8, letters: 3)
            default: break
            }
            return at
        }
    }

    /// Decodes text. Returns nil for padding, another character, an impossible length, or unused
    /// bits that are not zero. So each value has exactly one text.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? { decode(utf8: Array(text.utf8)[...]) }

    /// Decodes a text that is available as bytes, in the same way.
    public static func decode(utf8 text: ArraySlice<UInt8>) -> [UInt8]? {
        var isValid = true
        let bytes = [UInt8](unsafeUninitializedCapacity: text.count * 3 / 4) { bytes, count in
            var held: UInt32 = 0
            var bits: UInt32 = 0
            for character in text {
                let value: UInt32
                switch character {
                case 0x41...0x5a: value = UInt32(character - 0x41)
                case 0x61...0x7a: value = UInt32(character - 0x61 + 26)
                case 0x30...0x39: value = UInt32(character - 0x30 + 52)
                case UInt8(ascii: "-"): value = 62
                case UInt8(ascii: "_"): value = 63
                default: return isValid = false
                }
                held = held << 6 | value
                bits += 6
                if bits >= 8 {
                    bits -= 8
                    bytes[count] = UInt8(truncatingIfNeeded: held >> bits)
                    count += 1
                }
            }
            isValid = bits < 6 && held & ((1 << bits) - 1) == 0
        }
        return isValid ? bytes : nil
    }
}

extension String {
    /// Whether both texts have the same bytes. Swift's == treats different encodings of a character
    /// as equal, and `elementsEqual` takes many instructions for each byte.
    public func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        var (own, other) = (self, other)
        return own.withUTF8 { own in
            other.withUTF8 { other in
                guard let a = own.baseAddress, let b = other.baseAddress else { return true }
                return memcmp(a, b, own.count) == 0
            }
        }
    }
}
