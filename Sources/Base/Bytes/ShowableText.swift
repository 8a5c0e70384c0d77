/// Texts that a person can see as a whole.
extension Unicode.Scalar {
    /// Whether a person cannot see the character: two texts that differ in such characters alone look
    /// the same. Emoji that are joined by U+200D or styled by U+FE0F count as well, because a reader
    /// cannot tell how many joiners there are.
    public var isUnshowable: Bool {
        if (0x20..<0x7F).contains(value) { return false }
        switch properties.generalCategory {
        case .control, .surrogate, .unassigned, .privateUse, .lineSeparator, .paragraphSeparator, .format: return true
        default: return properties.isDefaultIgnorableCodePoint
        }
    }
}

extension String {
    /// Returns the text without the characters that a person cannot see and without those after the
    /// first `limit`; nil if nothing visible remains.
    public func showable(limit: Int) -> String? {
        var shown = UnicodeScalarView()
        for scalar in unicodeScalars.lazy.filter({ !$0.isUnshowable }).prefix(limit) { shown.append(scalar) }
        return shown.allSatisfy(\.properties.isWhitespace) ? nil : String(shown)
    }
}
