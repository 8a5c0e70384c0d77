/// The alphabet of text messages, GSM 03.38 (today 3GPP 23.038): 128 characters, and a second table
/// that an escape selects. A text with any other character needs UCS-2, which reduces a message
/// from 160 to 70 characters.
public enum GSMText {
    /// The septet that precedes a character of the second table.
    static let escape: UInt8 = 0x1b

    /// Encodes a text as septets, one in each byte. Returns nil if a character is in neither table.
    public static func encode(_ text: String) -> [UInt8]? {
        var septets: [UInt8] = []
        septets.reserveCapacity(text.utf8.count)
        for character in text {
            guard let code = codes[character] else { return nil }
            septets.append(contentsOf: code)
        }
        return septets
    }

    /// Returns the characters that are in neither table, in order of first appearance.
    public static func missing(in text: String) -> [Character] {
        var found: [Character] = []
        for character in text where codes[character] == nil && !found.contains(character) { found.append(character) }
        return found
    }

    /// Decodes septets; never fails. As the standard requires, an escaped septet that the second
    /// table lacks is read from the first table. An escape at the end is a space.
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

    /// Packs eight septets into seven octets, lowest bits first.
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

    /// Unpacks septets. Their number must be given, since it does not follow from the number of
    /// octets. Missing septets are omitted.
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

    /// The first table, indexed by septet; the position of the escape itself holds a placeholder.
    private static let basic: [Character] = Array(
        "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{a0}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
            + "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà")

    private static let extended: [UInt8: Character] = [
        0x0a: "\u{c}", 0x14: "^", 0x28: "{", 0x29: "}", 0x2f: "\\", 0x3c: "[", 0x3d: "~", 0x3e: "]", 0x40: "|",
        0x65: "€",
    ]

    /// The codes by character, not by scalar: an ü made of two scalars is an ü.
    private static let codes: [Character: [UInt8]] = {
        // Swift treats CR LF as one character.
        var codes: [Character: [UInt8]] = ["\r\n": [0x0d, 0x0a]]
        for (septet, character) in basic.enumerated() where septet != Int(escape) { codes[character] = [UInt8(septet)] }
        for (septet, character) in extended { codes[character] = [escape, septet] }
        return codes
    }()
}
