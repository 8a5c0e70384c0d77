import World

/// A mail as RFC 5322 writes it: one text in UTF-8.
struct InternetMessage: Sendable {
    var from: MailAddress
    /// Where the sender has none.
    var senderName: String?
    var to: String
    /// Empty is none.
    var subject: String
    var date: Timestamp
    /// What stands between `<` and `>`.
    var id: String
    var language: String?
    /// Lines that end with a line feed.
    var text: String

    func bytes() -> [UInt8] {
        // The address on a line of its own where there is a name, which may fill the first.
        let name = (from.name ?? senderName).map { HeaderText.phrase($0) + "\r\n " } ?? ""
        var fields = [
            "From: \(name)<\(from.address)>",
            "To: <\(to)>",
            "Date: \(Self.text(of: date))",
            "Message-ID: <\(id)>",
            // Nobody's out-of-office answers it (RFC 3834).
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=UTF-8",
            "Content-Transfer-Encoding: quoted-printable",
        ]
        if !subject.isEmpty {
            fields.insert("Subject: " + HeaderText.unstructured(subject, after: "Subject: ".count), at: 2)
        }
        if let language { fields.append("Content-Language: \(language)") }
        return Array((fields.joined(separator: "\r\n") + "\r\n\r\n").utf8) + QuotedPrintable.encode(text)
    }

    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// `Sun, 22 Nov 2026 01:02:03 +0000`
    static func text(of date: Timestamp) -> String {
        let parts = date.rfc3339.split { "-T:.".contains($0) }
        let month = Int(parts[1]).map { months[$0 - 1] } ?? ""
        let day = Int(date.seconds / 86_400) % 7
        return "\(weekdays[max(day, 0)]), \(parts[2]) \(month) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) +0000"
    }
}

/// Text within the header of a mail. Whatever it is, it stays within its field.
enum HeaderText {
    /// RFC 2047 §2.
    private static let longestWord = 75
    private static let longestLine = 76

    /// Of a subject, of which `used` characters of the line are taken.
    static func unstructured(_ text: String, after used: Int) -> String {
        // A word that is longer than a line has no place to be folded at.
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

    /// A name before an address: in quotes, or encoded.
    static func phrase(_ text: String) -> String {
        // Longer than a line it is folded, which encoded words can be.
        guard isPlain(text), text.utf8.count <= longestWord - 20 else { return words(text, after: "From: ".count) }
        return "\"" + text.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] } + "\""
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20...0x7e).contains($0) } && !text.contains("=?") && !text.contains("  ")
            && text.first != " " && text.last != " "
    }

    /// RFC 2047: encoded words, each of whole characters, one a line.
    private static func words(_ text: String, after used: Int) -> String {
        let (begin, end) = ("=?UTF-8?Q?", "?=")
        var words: [String] = []
        var word = ""
        var room = longestWord - used - begin.count - end.count
        // Of scalars, not of characters: somebody's character may be longer than a word.
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

/// RFC 2045 §6.7.
enum QuotedPrintable {
    private static let longest = 76

    /// Of lines that end with a line feed; they end with CR LF then.
    static func encode(_ text: String) -> [UInt8] {
        var lines = text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        var bytes: [UInt8] = []
        for line in lines {
            var column = 0
            for (at, byte) in line.enumerated() {
                let isLast = at == line.count - 1
                // Spaces at the end of a line get lost.
                let isPlain = (0x21...0x7e).contains(byte) && byte != 0x3d || byte == 0x20 && !isLast
                let part = isPlain ? [byte] : Array(escaped(byte).utf8)
                // The sign that a line goes on needs its place too.
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
