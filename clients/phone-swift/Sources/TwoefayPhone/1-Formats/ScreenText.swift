/// Texts of other parties, made safe for the screen.
public enum ScreenText {
    /// Returns the text with a number, such as `\u{202e}`, in place of each character that the
    /// protocol refuses. For texts that are shown but not agreed to, such as the relay's `detail`.
    public static func visible(_ text: String, limit: Int = 1000) -> String {
        var visible = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(limit) {
            if isVisible(scalar) {
                visible.append(scalar)
            } else {
                visible.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            }
        }
        return String(visible)
    }

    /// Whether a person can see the character. Control characters could overwrite the screen. Marks
    /// of text direction could reverse an amount. Invisible characters could make two different
    /// texts look equal.
    public static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0, 0xad, 0x34f, 0x61c, 0x115f...0x1160, 0x17b4...0x17b5, 0x180b...0x180f,
            0x200b...0x200f, 0x2028...0x202e, 0x2060...0x206f, 0x3164, 0xfe00...0xfe0f, 0xfeff, 0xffa0,
            0xfff0...0xfffb, 0x1bca0...0x1bca3, 0x1d173...0x1d17a, 0xe0000...0xe0fff:
            false
        default: true
        }
    }
}
