/// Lower-case hexadecimal text.
public enum Hex {
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        // Converted to an array, here and below, because generic code is not specialised for other
        // modules and costs a call per byte.
        let bytes = Array(bytes)
        return String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
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
        func value(_ digit: UInt8) -> UInt8? {
            switch digit {
            case 0x30...0x39: digit - 0x30
            case 0x61...0x66: digit - 0x61 + 10
            default: nil
            }
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for at in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[at]), let low = value(digits[at + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

/// Base64url without padding (RFC 4648 §5).
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        let bytes = Array(bytes)
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var held: UInt32 = 0
        var bits = 0
        for byte in bytes {
            held = held << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[Int(held >> bits & 63)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(held << (6 - bits) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes text. Returns nil for padding, another character, an impossible length, or unused
    /// bits that are not zero. So each value has exactly one text.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? { decode(utf8: Array(text.utf8)[...]) }

    /// Decodes a text that is available as bytes, in the same way.
    public static func decode(utf8 text: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var held: UInt32 = 0
        var bits = 0
        for character in text {
            let value: UInt32
            switch character {
            case 0x41...0x5a: value = UInt32(character - 0x41)
            case 0x61...0x7a: value = UInt32(character - 0x61 + 26)
            case 0x30...0x39: value = UInt32(character - 0x30 + 52)
            case UInt8(ascii: "-"): value = 62
            case UInt8(ascii: "_"): value = 63
            default: return nil
            }
            held = held << 6 | value
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: held >> bits))
            }
        }
        guard bits < 6, held & ((1 << bits) - 1) == 0 else { return nil }
        return bytes
    }
}
