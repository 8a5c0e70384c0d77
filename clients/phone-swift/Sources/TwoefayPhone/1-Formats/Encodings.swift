/// base64url without padding (RFC 4648, 5). Each text has one meaning, and each value one text.
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var (bits, count) = (UInt32(0), 0)
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(alphabet[Int(bits >> UInt32(count)) & 63])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << UInt32(6 - count)) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes; nil if the text has other characters, padding, or bits that are left
    /// over.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? { decoded(text, alphabet, width: 6) }
}

/// base32 (RFC 4648, 6), in capitals and without padding.
public enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    public static func decode(_ text: some StringProtocol) -> [UInt8]? { decoded(text, alphabet, width: 5) }
}

private func decoded(_ text: some StringProtocol, _ alphabet: [UInt8], width: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    var (bits, count) = (UInt32(0), 0)
    for byte in text.utf8 {
        guard let value = alphabet.firstIndex(of: byte) else { return nil }
        bits = bits << UInt32(width) | UInt32(value)
        count += width
        guard count >= 8 else { continue }
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        bits &= (1 << UInt32(count)) - 1
    }
    return count < width && bits == 0 ? bytes : nil
}
