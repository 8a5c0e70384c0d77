import Domain
import HTTP

/// The `Accept-Language` field (RFC 9110 §12.5.4), which a website passes on from its visitor. An
/// invalid or too long value is ignored.
enum AcceptLanguage {
    static let longest = 256

    static func read(_ fields: Fields) -> String? {
        let text = fields.values("accept-language").joined(separator: ", ")
        guard (1...longest).contains(text.utf8.count), FieldRule.language(text) == nil else { return nil }
        return text
    }
}
