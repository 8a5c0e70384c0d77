/// The id of a notice, a row of the table `notice`.
public typealias NoticeID = Identifier<IdentifierKind.Notice>

extension IdentifierKind {
    public enum Notice: Sendable {}
}

/// The limits of notices: short texts for a user, which the user's phones show.
public enum NoticeLimits {
    public static let title = 64
    public static let text = 1000
    /// The most notices of one user that no phone has fetched yet.
    public static let unread = 50
    /// The most notices of one user, fetched or not. A list has all of them, and each is checked
    /// for it.
    public static let stored = 200
}

/// The author of a notice.
public enum NoticeAuthor: String, Sendable, CaseIterable {
    case website, `operator`
}

extension FieldRule {
    /// Checks a text of several lines, separated by `\n`. Each line follows the rule of `line`, but
    /// may be empty.
    public static func lines(_ text: String, limit: Int) -> LocalizedText? {
        if text.unicodeScalars.count > limit { return tooLong(limit) }
        let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.contains(where: { line in line.contains { $0 != " " } }) else { return empty }
        for line in lines where !line.isEmpty {
            if let complaint = self.line(String(line), limit: limit) { return complaint }
        }
        return nil
    }
}
