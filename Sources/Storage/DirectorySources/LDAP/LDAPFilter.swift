/// The text of search filters (RFC 4515).
enum LDAPFilter {
    /// Escapes a value for a filter. Every byte that is not a letter, a digit or a harmless sign is
    /// written as a backslash with two hexadecimal digits, so that a value can never end its
    /// comparison or add another one.
    static func escaped(_ value: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in value.utf8 {
            let isPlain =
                (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || " ,-.=@_".utf8.contains(byte)
            text += isPlain ? [byte] : [UInt8(ascii: "\\"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the filter for entries that match all of these filters.
    static func all(_ filters: [String]) -> String {
        filters.count == 1 ? filters[0] : "(&" + filters.joined() + ")"
    }
}
