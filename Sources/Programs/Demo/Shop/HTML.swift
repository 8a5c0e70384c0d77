/// A part of a page. Whatever is put into it by `\(…)` is escaped; only what is HTML already stays as it is. So a name with
/// `<script>` in it is a name, and nobody has to remember that.
struct HTML: Sendable, ExpressibleByStringInterpolation {
    private(set) var text: String

    init(stringLiteral text: String) { self.text = text }
    init(stringInterpolation parts: StringInterpolation) { text = parts.text }

    /// What a part of this program has drawn, such as a QR code. Never what came from outside.
    init(drawn text: String) { self.text = text }

    /// For element content, and for attributes in double or single quotes.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation(_ plain: String) { text += HTML.escaped(plain) }
        mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }
        mutating func appendInterpolation(_ html: HTML) { text += html.text }
        mutating func appendInterpolation(_ html: HTML?) { text += html?.text ?? "" }
        mutating func appendInterpolation(_ parts: [HTML]) { text += parts.map(\.text).joined(separator: "\n") }
    }
}
