/// Base64 of RFC 4648 §4, with `+`, `/` and padding.
public enum Base64 {
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text = Array(Base64URL.encode(bytes).utf8)
        for at in text.indices { text[at] = plain(text[at]) }
        for _ in 0..<padding(of: text.count) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes text. Returns nil for missing padding, another character, an impossible length, or
    /// unused bits that are not zero. So each value has exactly one text.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var letters = Array(text.utf8)
        let count = (letters.lastIndex { $0 != UInt8(ascii: "=") } ?? -1) + 1
        guard letters.count - count == padding(of: count) else { return nil }
        letters.removeLast(letters.count - count)
        for at in letters.indices {
            switch letters[at] {
            case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
            case UInt8(ascii: "+"): letters[at] = UInt8(ascii: "-")
            case UInt8(ascii: "/"): letters[at] = UInt8(ascii: "_")
            default: break
            }
        }
        return Base64URL.decode(utf8: letters[...])
    }

    private static func plain(_ letter: UInt8) -> UInt8 {
        switch letter {
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: letter
        }
    }

    private static func padding(of letters: Int) -> Int { (4 - letters % 4) % 4 }
}
