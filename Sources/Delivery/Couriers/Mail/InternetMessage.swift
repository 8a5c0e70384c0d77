import Bytes
import World

/// A mail in the format of RFC 5322 with one UTF-8 text, and perhaps an image after it.
struct InternetMessage: Sendable {
    var from: MailAddress
    /// The display name to use if `from` has none.
    var senderName: String?
    var to: String
    /// The subject; empty means no subject.
    var subject: String
    var date: Timestamp
    /// The Message-ID without `<` and `>`.
    var id: String
    var language: String?
    /// The text, in lines that end with a line feed.
    var text: String
    /// A PNG image to show after the text.
    var image: Image?

    struct Image: Sendable {
        /// The file name under which a reader may save it.
        var name: String
        var png: [UInt8]
    }

    func bytes() -> [UInt8] {
        // The address goes on the next line if there is a name, which may fill the first line.
        let name = (from.name ?? senderName).map { HeaderText.phrase($0) + "\r\n " } ?? ""
        var fields = [
            "From: \(name)<\(from.address)>",
            "To: <\(to)>",
            "Date: \(Self.text(of: date))",
            "Message-ID: <\(id)>",
            // Suppresses automatic replies such as out-of-office notices (RFC 3834).
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
        ]
        if !subject.isEmpty {
            fields.insert("Subject: " + HeaderText.unstructured(subject, after: "Subject: ".count), at: 2)
        }
        if let language { fields.append("Content-Language: \(language)") }
        return Self.lines(fields) + content
    }

    private var content: [UInt8] {
        let part =
            Self.lines(["Content-Type: text/plain; charset=UTF-8", "Content-Transfer-Encoding: quoted-printable", ""])
            + QuotedPrintable.encode(text)
        guard let image else { return part }
        var bytes = Self.lines(["Content-Type: multipart/mixed; boundary=\"\(Self.boundary)\"", ""])
        bytes += Self.lines(["--\(Self.boundary)"]) + part
        bytes += Self.lines([
            // The line break before a boundary belongs to the boundary, not to the text.
            "", "--\(Self.boundary)", "Content-Type: image/png", "Content-Transfer-Encoding: base64",
            "Content-Disposition: inline; filename=\"\(image.name)\"", "",
        ])
        bytes += Self.lines(Self.folded(Base64.encode(image.png)) + ["--\(Self.boundary)--"])
        return bytes
    }

    /// The delimiter of the parts, which cannot occur in a part: base64 has no underscore, and in
    /// quoted-printable an equals sign is followed by two hexadecimal digits or the end of the
    /// line.
    private static let boundary = "=_twoefay_part"

    private static func lines(_ lines: [String]) -> [UInt8] { Array(lines.map { $0 + "\r\n" }.joined().utf8) }

    /// Splits base64 into lines of 76 characters, the longest that RFC 2045 allows.
    private static func folded(_ text: String) -> [String] {
        let letters = Array(text.utf8)
        return stride(from: 0, to: letters.count, by: 76).map {
            String(decoding: letters[$0..<min($0 + 76, letters.count)], as: UTF8.self)
        }
    }

    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Formats a date, such as `Sun, 22 Nov 2026 01:02:03 +0000`.
    static func text(of date: Timestamp) -> String {
        let parts = date.rfc3339.split { "-T:.".contains($0) }
        let month = Int(parts[1]).map { months[$0 - 1] } ?? ""
        let day = Int(date.seconds / 86_400) % 7
        return "\(weekdays[max(day, 0)]), \(parts[2]) \(month) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) +0000"
    }
}

/// The encoding of text in mail header fields. No text can break out of its field.
enum HeaderText {
    /// The maximum length of an encoded word (RFC 2047 §2).
    private static let longestWord = 75
    private static let longestLine = 76

    /// Encodes a subject.
    ///
    /// - Parameter used: the number of characters that the line already has.
    static func unstructured(_ text: String, after used: Int) -> String {
        // A word that is longer than a line cannot be folded, so the text is encoded.
        guard isPlain(text), !text.utf8.split(separator: 0x20).contains(where: { $0.count > longestLine - used }) else {
            return words(text, after: used)
        }
        var lines = [""]
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            let room = longestLine - (lines.count == 1 ? used : 1)
            if lines[lines.count - 1].isEmpty {
                lines[lines.count - 1] = String(word)
            } else if lines[lines.count - 1].utf8.count + 1 + word.utf8.count > room, !word.isEmpty {
                lines.append(String(word))
            } else {
                lines[lines.count - 1] += " \(word)"
            }
        }
        return lines.joined(separator: "\r\n ")
    }

    /// Encodes a display name, in quotes or as encoded words.
    static func phrase(_ text: String) -> String {
        // A name longer than a line must be folded, which encoded words permit.
        guard isPlain(text), text.utf8.count <= longestWord - 20 else { return words(text, after: "From: ".count) }
        return "\"" + text.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] } + "\""
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20...0x7e).contains($0) } && !text.contains("=?") && !text.contains("  ")
            && text.first != " " && text.last != " "
    }

    /// Splits a text into encoded words (RFC 2047), one on each line. No word divides a character.
    private static func words(_ text: String, after used: Int) -> String {
        let (begin, end) = ("=?UTF-8?Q?", "?=")
        var words: [String] = []
        var word = ""
        var room = longestWord - used - begin.count - end.count
        // Splits by scalar, not by grapheme: a grapheme can be longer than an encoded word.
        for scalar in text.unicodeScalars {
            let part = String(scalar).utf8.map { letter($0) }.joined()
            if word.utf8.count + part.utf8.count > room {
                words.append(begin + word + end)
                (word, room) = ("", longestWord - begin.count - end.count)
            }
            word += part
        }
        return (words + [begin + word + end]).joined(separator: "\r\n ")
    }

    private static func letter(_ byte: UInt8) -> String {
        switch byte {
        case 0x20: "_"
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: String(UnicodeScalar(byte))
        default: QuotedPrintable.escaped(byte)
        }
    }
}

/// The quoted-printable encoding (RFC 2045 §6.7).
enum QuotedPrintable {
    private static let longest = 76

    /// Encodes a text with line feeds; the lines of the result end with CR LF.
    static func encode(_ text: String) -> [UInt8] {
        var lines = text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        var bytes: [UInt8] = []
        for line in lines {
            var column = 0
            for (at, byte) in line.enumerated() {
                let isLast = at == line.count - 1
                // Transport may remove spaces at the end of a line.
                let isPlain = (0x21...0x7e).contains(byte) && byte != 0x3d || byte == 0x20 && !isLast
                let part = isPlain ? [byte] : Array(escaped(byte).utf8)
                // The soft line break needs one column.
                if column + part.count > longest - (isLast ? 0 : 1) {
                    bytes += Array("=\r\n".utf8)
                    column = 0
                }
                bytes += part
                column += part.count
            }
            bytes += [0x0d, 0x0a]
        }
        return bytes
    }

    static func escaped(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return "=" + (digits.count == 1 ? "0" : "") + digits
    }
}
