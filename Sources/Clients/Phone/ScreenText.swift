/// Makes texts from other parties safe for a screen.
public enum ScreenText {
    /// Returns the text with its invisible characters escaped. Control characters, marks of text
    /// direction and invisible characters are shown by their number, as `\u{202e}`.
    ///
    /// - Parameter limit: the number of characters (Unicode scalars) after which the text is cut.
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
        // Fillers and variation selectors count as letters and marks, but are invisible too.
        default: !scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}
