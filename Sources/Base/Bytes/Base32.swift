/// Base32 without padding (RFC 4648 §6), for keys that people may have to type.
public enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 8 + 4) / 5)
        var held: UInt32 = 0
        var bits = 0
        for byte in Array(bytes) {
            held = held << 8 | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[Int(held >> bits & 31)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(held << (5 - bits) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes text as people and token manufacturers write it: in either case, with or without
    /// padding, spaces and dashes. Returns nil for another character, an impossible length, or
    /// unused bits that are not zero.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8).filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "-") }
        while digits.last == UInt8(ascii: "=") { digits.removeLast() }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 5 / 8)
        var held: UInt32 = 0
        var bits = 0
        for digit in digits {
            let value: UInt32
            switch digit {
            case 0x41...0x5a: value = UInt32(digit - 0x41)
            case 0x61...0x7a: value = UInt32(digit - 0x61)
            case 0x32...0x37: value = UInt32(digit - 0x32 + 26)
            default: return nil
            }
            held = held << 5 | value
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: held >> bits))
            }
        }
        guard bits < 5, held & ((1 << bits) - 1) == 0 else { return nil }
        return bytes
    }
}
