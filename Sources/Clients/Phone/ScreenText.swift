/// Texts of others on their way to somebody's screen.
public enum ScreenText {
    /// With everything visible: what drives a screen, turns the direction of reading or is not seen at all stands there by
    /// its number, as `\u{202e}`.
    public static func visible(_ text: String, limit: Int = .max) -> String {
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

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        // Fillers and selectors count as letters and marks, and are not seen either.
        default: !scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}
