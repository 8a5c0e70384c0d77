import JSON

/// The regular expressions (ECMA 262) by which the OpenAPI document describes texts. A pattern accepts
/// everything that the rule of its field accepts. The rule of lines refuses some more: see
/// `FieldRule.line`.
enum FieldPattern {
    /// A line without control characters and without the common invisible characters.
    static let line = "^[^\(hidden)]+$"
    static let lines = "^([^\(hidden)]|\\n)+$"
    private static let hidden =
        "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
    static let opaque = "^[!-~]*$"
    static let id = "^[0-9a-f]{32}$"
    static let email = "^[\(atom)]+(\\.[\(atom)]+)*@(\(label)\\.)+\(label)$"
    private static let atom = "A-Za-z0-9!#$%&'*+/=?^_`{|}~-"
    private static let label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    static let phone = "^\\+[1-9][0-9]{6,14}$"
    static let language = "^\(range)(,\(range))*$"
    private static let range =
        "[ \\t]*([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*|\\*)[ \\t]*"
        + "(;[ \\t]*[qQ]=(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?)[ \\t]*)?"
    static let pem = "^[ -~\\r\\n]+$"
    static let tag = "^[a-z][a-z0-9-]*$"
    static let nonce = "^[A-Za-z0-9_-]{16,64}$"
    /// An IPv4 address, or an IPv6 address, whose last 32 bits may have the form of IPv4.
    static let ip = "^(\(ipv4)|\(ipv6.joined(separator: "|")))$"
    private static let ipv4 = "(\(byte)\\.){3}\(byte)"
    private static let byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
    private static let group = "[0-9A-Fa-f]{1,4}"
    /// The forms of IPv6: eight groups, or fewer with `::` after each possible number of them.
    private static let ipv6 =
        [
            "(\(group):){7}\(group)", "(\(group):){6}\(ipv4)", "::((\(group):){0,6}\(group))?",
            "::(\(group):){0,5}\(ipv4)",
        ]
        + (1...6).map { "(\(group):){\($0)}:((\(group):){0,\(6 - $0)}\(group))?" } + ["(\(group):){7}:"]
        + (1...5).map { "(\(group):){\($0)}:(\(group):){0,\(5 - $0)}\(ipv4)" }
    static let digest = "^[A-Za-z0-9_-]{43}=?$"
    static let revocationCode = "^[A-Za-z0-9_-]{20}$"
    /// Letters of base32 with spaces, dashes and padding, or hexadecimal digits.
    static let seed = "^([Hh][Ee][Xx]:([0-9A-Fa-f]{2}){16,128}|[ -]*([A-Za-z2-7][ =-]*){26,})$"
    /// Digits, or the letters of a recovery code or a temporary code with spaces and dashes.
    static let anyCode = "^([0-9]{6,8}|[ -]*([A-Za-z2-7][ -]*){16}|[ -]*([0-9A-TV-Za-tv-z][ -]*){10})$"
    /// A time in UTC.
    static let time = "^(19[7-9][0-9]|[2-9][0-9]{3})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$"

    static func digits(_ counts: ClosedRange<Int>) -> String {
        "^[0-9]{\(counts.lowerBound),\(counts.upperBound)}$"
    }
}

extension Field {
    /// The same field with a pattern in its schema.
    func like(_ pattern: String) -> Field { with("pattern", .string(pattern)) }

    /// The same field with a keyword in its schema.
    func with(_ keyword: String, _ value: JSONValue) -> Field {
        var schema = schema
        schema.set(keyword, value)
        return Field(name: name, summary: summary, schema: schema, read: read)
    }
}
