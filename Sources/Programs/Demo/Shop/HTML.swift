import Bytes

/// A part of a page.
///
/// Invariant: every text that is interpolated with `\(…)` is escaped, except values of type `HTML`.
/// A name that contains `<script>` is therefore shown as text, and no caller can forget to escape
/// it. Tested in `ShopComponentTests.swift` and `ShopDefenceTests.swift`.
struct HTML: Sendable, ExpressibleByStringInterpolation {
    private(set) var text: String

    init(stringLiteral text: String) { self.text = text }
    init(stringInterpolation parts: StringInterpolation) { text = parts.text }

    /// Takes HTML that this program generated, such as a QR code. Never use it for external input.
    init(drawn text: String) { self.text = text }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation(_ plain: String) { text += Markup.escaped(plain) }
        mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }
        mutating func appendInterpolation(_ html: HTML) { text += html.text }
        mutating func appendInterpolation(_ html: HTML?) { text += html?.text ?? "" }
        mutating func appendInterpolation(_ parts: [HTML]) { text += parts.map(\.text).joined(separator: "\n") }
    }
}
