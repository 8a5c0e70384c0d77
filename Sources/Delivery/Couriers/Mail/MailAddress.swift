import Domain

/// The sender address of mails: `login@example.com`, or `Example Login <login@example.com>`.
public struct MailAddress: Sendable, Hashable {
    public let address: String
    /// The display name; nil if mails have the website's name.
    public let name: String?

    /// Parses an address, with or without a display name. Returns nil if the text is neither.
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

    /// The part after the at sign.
    var domain: String { String(address.drop { $0 != "@" }.dropFirst()) }
}
