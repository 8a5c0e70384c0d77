import Bytes

/// A mail as its reader sees it: the text of a mail with one part, with all transfer encodings
/// decoded.
struct CaughtMail: Sendable, Equatable {
    var to: String
    var from = ""
    var subject = ""
    var text = ""

    /// Parses a mail.
    ///
    /// - Parameter content: the header, an empty line and the body. Lines end with a line feed.
    init(_ content: [UInt8], to: String) {
        self.to = to
        let lines = content.split(separator: 0x0a, omittingEmptySubsequences: false)
        let end = lines.firstIndex { $0.isEmpty } ?? lines.endIndex
        let header = Self.unfolded(lines[..<end])
        from = EncodedWords.decoded(header["from"] ?? "")
        subject = EncodedWords.decoded(header["subject"] ?? "")
        let body = Array(lines[end...].dropFirst().joined(separator: [0x0a]))
        let bytes =
            switch header["content-transfer-encoding"]?.lowercased() {
            case "quoted-printable": Self.unquoted(body)
            case "base64": Base64.decode(String(decoding: body.filter { $0 != 0x0a }, as: UTF8.self)) ?? body
            default: body
            }
        // Line ends become single line feeds.
        text = String(decoding: bytes.filter { $0 != 0x0d }, as: UTF8.self)
    }

    private static func unfolded(_ lines: ArraySlice<ArraySlice<UInt8>>) -> [String: String] {
        var fields: [String: String] = [:]
        var open: String?
        for line in lines {
            let text = String(decoding: line, as: UTF8.self)
            if let name = open, text.first == " " || text.first == "\t" {
                fields[name, default: ""] += " " + text.drop { $0 == " " || $0 == "\t" }
            } else if let colon = text.firstIndex(of: ":") {
                let name = text[..<colon].lowercased()
                fields[name] = String(text[text.index(after: colon)...].drop { $0 == " " })
                open = name
            }
        }
        return fields
    }

    /// Decodes quoted-printable text (RFC 2045 §6.7). An invalid escape stays as it is.
    static func unquoted(_ text: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "=") else {
                bytes.append(byte)
                continue
            }
            if rest.first == 0x0a {
                rest = rest.dropFirst()
            } else if let code = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self).lowercased()),
                code.count == 1
            {
                bytes += code
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}

/// Decodes encoded words (RFC 2047) in UTF-8, with both encodings.
enum EncodedWords {
    static func decoded(_ text: String) -> String {
        var decoded = ""
        var wasWord = false
        for part in text.split(separator: " ", omittingEmptySubsequences: false) {
            let word = bytes(of: part)
            // The space between two encoded words only separates them, so it is dropped.
            if !decoded.isEmpty && !(wasWord && word != nil) { decoded += " " }
            decoded += word.map { String(decoding: $0, as: UTF8.self) } ?? String(part)
            wasWord = word != nil
        }
        return decoded
    }

    /// Decodes one encoded word, such as `=?UTF-8?Q?…?=`; nil if the text is none.
    private static func bytes(of word: Substring) -> [UInt8]? {
        guard word.hasPrefix("=?"), word.hasSuffix("?="), word.count > 4 else { return nil }
        let parts = word.dropFirst(2).dropLast(2).split(separator: "?", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
        switch parts[1].uppercased() {
        case "Q": return CaughtMail.unquoted(parts[2].utf8.map { $0 == UInt8(ascii: "_") ? 0x20 : $0 })
        case "B": return Base64.decode(parts[2])
        default: return nil
        }
    }
}
