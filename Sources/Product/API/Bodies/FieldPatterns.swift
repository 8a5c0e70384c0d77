import JSON

/// The regular expressions (ECMA 262) by which the OpenAPI document describes texts. A pattern accepts
/// exactly the texts that the rule of its field accepts, with one exception: lines.
///
/// The rule of lines (`FieldRule.line`) also refuses characters that Unicode has not assigned, and some
/// beyond U+FFFF. There are hundreds of ranges of them, which change with each version of Unicode, and
/// many regular expressions know neither `\p{Cn}` nor characters beyond U+FFFF.
///
/// The patterns have no look-ahead, because several languages have none. A limit that needs it is a
/// pattern in `not`.
enum FieldPattern {
    static let line = "^[^\(hidden)]+$"
    /// Lines of which at least one is not blank.
    static let lines = "^[ \\n]*[^ \(hidden)]([^\(hidden)]|\\n)*$"
    /// The characters up to U+FFFF that are controls, format characters, private or invisible.
    private static let hidden =
        "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2"
        + "\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164"
        + "\\ue000-\\uf8ff\\ufdd0-\\ufdef\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff"
    /// Any text of I-JSON, apart from characters beyond U+FFFF that are none.
    static let any = "^[^\\u0000\\ufdd0-\\ufdef\\ufffe\\uffff]*$"
    static let opaque = "^[!-~]*$"
    /// A compact JWS with ES256.
    static let jws = "^(\(base64URL))\\.(\(base64URL))\\.[A-Za-z0-9_-]{85}[AQgw]$"
    /// An ECDSA signature of 64 bytes in base64url.
    static let ecdsa = "^[A-Za-z0-9_-]{85}[AQgw]$"
    private static let base64URL =
        "([A-Za-z0-9_-]{4})*([A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?"
    /// Base64 with padding.
    static let base64 =
        "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
    static let id = "^[0-9a-f]{32}$"
    static let email = "^[\(atom)]+(\\.[\(atom)]+)*@(\(label)\\.)+\(label)$"
    private static let atom = "A-Za-z0-9!#$%&'*+/=?^_`{|}~-"
    private static let label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    /// A local part that is too long.
    static let longMailbox = "^[^@]{65}"
    static let phone = "^\\+[1-9][0-9]{6,14}$"
    static let language = "^\(range)(,\(range))*$"
    private static let range =
        "[ \\t]*([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*|\\*)[ \\t]*"
        + "(;[ \\t]*[qQ]=(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?)[ \\t]*)?"
    /// A tag that is too long.
    static let longTag = "[A-Za-z0-9-]{36}"
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
    static let digest = "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"
    static let revocationCode = "^[A-Za-z0-9_-]{20}$"
    /// 16 to 128 bytes in hexadecimal digits, or in base32 with spaces, dashes and padding.
    static let seed = "^([Hh][Ee][Xx]:([0-9A-Fa-f]{2}){16,128}|[ -]*(\(base32))(=[ -]*)*)$"
    /// Groups of eight letters, and a rest of two, four, five or seven whose unused bits are zero.
    private static let base32 = [
        "(\(letter){8}){4,25}", "(\(letter){8}){3,25}\(letter)[AEIMQUYaeimquy4][ -]*",
        "(\(letter){8}){3,25}\(letter){3}[AQaq][ -]*",
        "(\(letter){8}){3,25}\(letter){4}[ACEGIKMOQSUWYacegikmoqsuwy246][ -]*",
        "(\(letter){8}){3,24}\(letter){6}[AIQYaiqy][ -]*",
    ].joined(separator: "|")
    private static let letter = "([A-Za-z2-7][ -]*)"
    /// Digits, or the letters of a recovery code or a temporary code with spaces and dashes.
    static let anyCode = "^([0-9]{6,8}|[ -]*([A-Za-z2-7][ -]*){16}|[ -]*([0-9A-TV-Za-tv-z][ -]*){10})$"
    /// A time in UTC.
    static let time =
        "^(19[7-9][0-9]|[2-9][0-9]{3})-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?Z$"

    /// A day that the relay does not store: see `Timestamp.choosable`.
    static let lastDay = "^9999-12-31"

    static func digits(_ counts: ClosedRange<Int>) -> String {
        "^[0-9]{\(counts.lowerBound),\(counts.upperBound)}$"
    }
}

extension Field {
    /// The same field with a pattern in its schema.
    func like(_ pattern: String) -> Field { with("pattern", .string(pattern)) }

    /// The same field with a pattern in its schema that its texts must not match.
    func unlike(_ pattern: String) -> Field { with("not", ["type": "string", "pattern": .string(pattern)]) }

    /// The same field with a keyword in its schema.
    func with(_ keyword: String, _ value: JSONValue) -> Field {
        var schema = schema
        schema.set(keyword, value)
        return Field(name: name, summary: summary, schema: schema, read: read)
    }
}
