import Domain

/// Whom mails come from: `login@example.com`, or `Example Login <login@example.com>`.
public struct MailAddress: Sendable, Hashable {
    public let address: String
    /// Nil where mails bear the website's name.
    public let name: String?

    /// Nil for everything else.
    public init?(_ text: String) {
        var address = Substring(text)
        var name: String?
        if text.hasSuffix(">"), let open = text.lastIndex(of: "<") {
            address = text[text.index(after: open)...].dropLast()
            var words = text[..<open]
            while words.last == " " { words.removeLast() }
            if words.count > 1, words.hasPrefix("\""), words.hasSuffix("\"") { words = words.dropFirst().dropLast() }
            name = words.isEmpty ? nil : String(words)
        }
        guard FieldRule.email(String(address)) == nil, name.map({ FieldRule.line($0, limit: 128) == nil }) ?? true
        else {
            return nil
        }
        self.address = String(address)
        self.name = name
    }

    public var text: String { name.map { "\($0) <\(address)>" } ?? address }

    /// Behind the at sign.
    var domain: String { String(address.drop { $0 != "@" }.dropFirst()) }
}
