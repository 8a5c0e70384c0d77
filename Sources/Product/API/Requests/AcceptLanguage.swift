import Domain
import HTTP

/// `Accept-Language` (RFC 9110 §12.5.4), which a website hands on from its visitor. What is not understood is no error: it is not there.
enum AcceptLanguage {
    static let longest = 256

    static func read(_ fields: Fields) -> String? {
        let text = fields.values("accept-language").joined(separator: ", ")
        guard (1...longest).contains(text.utf8.count), FieldRule.language(text) == nil else { return nil }
        return text
    }
}
