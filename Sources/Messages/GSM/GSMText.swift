/// The alphabet of text messages, GSM 03.38 (today 3GPP 23.038): 128 characters, and a second table behind an escape.
/// A text that has any other character needs UCS-2, and then only 70 of them fit into a message in place of 160.
public enum GSMText {
    /// In front of a character of the second table.
    static let escape: UInt8 = 0x1b

    /// Septets, one a byte. Nil when a character is in neither table.
    public static func encode(_ text: String) -> [UInt8]? {
        var septets: [UInt8] = []
        septets.reserveCapacity(text.utf8.count)
        for character in text {
            guard let code = codes[character] else { return nil }
            septets.append(contentsOf: code)
        }
        return septets
    }

    /// The characters that are in neither table, in the order in which they first appear.
    public static func missing(in text: String) -> [Character] {
        var found: [Character] = []
        for character in text where codes[character] == nil && !found.contains(character) { found.append(character) }
        return found
    }

    /// Never fails, whatever comes: as the standard wants it, a septet behind an escape that the second table does not know is
    /// read by the first, and an escape with nothing behind it is a space.
    public static func decode(_ septets: [UInt8]) -> String {
        var text = String()
        var escaped = false
        for septet in septets {
            let septet = Int(septet & 0x7f)
            if escaped {
                escaped = false
                text.append(extended[UInt8(septet)] ?? (septet == Int(escape) ? " " : basic[septet]))
            } else if septet == Int(escape) {
                escaped = true
            } else {
                text.append(basic[septet])
            }
        }
        if escaped { text.append(" ") }
        return text
    }

    /// Eight septets in seven octets, lowest bits first.
    public static func pack(_ septets: [UInt8]) -> [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity((septets.count * 7 + 7) / 8)
        var held: UInt32 = 0
        var bits: UInt32 = 0
        for septet in septets {
            held |= UInt32(septet & 0x7f) << bits
            bits += 7
            if bits >= 8 {
                octets.append(UInt8(truncatingIfNeeded: held))
                held >>= 8
                bits -= 8
            }
        }
        if bits > 0 { octets.append(UInt8(truncatingIfNeeded: held)) }
        return octets
    }

    /// The number of septets does not follow from that of the octets, so it has to be said. What is not there is not given.
    public static func unpack(_ octets: [UInt8], count: Int) -> [UInt8] {
        var septets: [UInt8] = []
        var held: UInt32 = 0
        var bits: UInt32 = 0
        for octet in octets {
            held |= UInt32(octet) << bits
            bits += 8
            while bits >= 7, septets.count < count {
                septets.append(UInt8(held & 0x7f))
                held >>= 7
                bits -= 7
            }
            guard septets.count < count else { break }
        }
        return septets
    }

    /// The first table, by the septet. A place stands for the escape itself.
    private static let basic: [Character] = Array(
        "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{a0}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
            + "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà")

    private static let extended: [UInt8: Character] = [
        0x0a: "\u{c}", 0x14: "^", 0x28: "{", 0x29: "}", 0x2f: "\\", 0x3c: "[", 0x3d: "~", 0x3e: "]", 0x40: "|",
        0x65: "€",
    ]

    /// By characters, not by scalars: an ü of two scalars is an ü.
    private static let codes: [Character: [UInt8]] = {
        // Swift takes the two for one character.
        var codes: [Character: [UInt8]] = ["\r\n": [0x0d, 0x0a]]
        for (septet, character) in basic.enumerated() where septet != Int(escape) { codes[character] = [UInt8(septet)] }
        for (septet, character) in extended { codes[character] = [escape, septet] }
        return codes
    }()
}
