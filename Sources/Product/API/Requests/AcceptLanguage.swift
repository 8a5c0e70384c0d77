import Domain
import HTTP
import Templates

/// The languages that a request asks for: `Accept-Language` (RFC 9110 §12.5.4), which a website
/// passes on from its visitor, and `Accept-User-Language`, which has the same form and states the
/// person's own choice. An invalid or too long value is ignored.
enum AcceptLanguage {
    static let longest = 256

    static func read(_ fields: Fields) -> RequestedLanguages {
        RequestedLanguages(
            chosen: value("accept-user-language", fields), accepted: value("accept-language", fields))
    }

    /// The language of the texts in an answer: the first of the API's languages that the person
    /// chose, or else that the browser prefers, or else English.
    static func textLanguage(_ fields: Fields) -> TextLanguage { textLanguage(read(fields)) }

    static func textLanguage(_ languages: RequestedLanguages) -> TextLanguage {
        for preference in [languages.chosen, languages.accepted] {
            guard let preference else { continue }
            for tag in LanguagePreference.tags(preference) {
                if let language = TextLanguage(rawValue: tag) { return language }
            }
        }
        return .english
    }

    private static func value(_ name: String, _ fields: Fields) -> String? {
        let values = fields.values(name)
        // Most requests have neither field. The work on the others is limited by their length.
        guard !values.isEmpty, values.reduce(0, { $0 + $1.utf8.count }) <= longest else { return nil }
        // Empty elements of a list have no meaning (RFC 9110 §5.6.1).
        let ranges = values.joined(separator: ",").split(separator: ",").filter { range in
            range.contains { $0 != " " && $0 != "\t" }
        }
        let text = ranges.joined(separator: ",")
        guard (1...longest).contains(text.utf8.count), FieldRule.language(text) == nil else { return nil }
        return text
    }
}
