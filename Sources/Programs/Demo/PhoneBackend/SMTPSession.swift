/// The server's side of one SMTP session (RFC 5321), as a state machine without socket and clock.
/// It supports only the commands that a client needs to submit plain mails.
///
/// Invariant: the session ends at the first line that is not an SMTP command. A website can make a
/// browser send a POST to a port of this machine, and its body may contain the lines of a mail. The
/// request line comes before the body and ends the session. Tested in `SMTPSessionTests.swift`.
struct SMTPSession {
    private enum State {
        case commands
        case content
    }

    static let greeting = Array("220 localhost the demo's mail catcher\r\n".utf8)

    /// The size limits of a mail and of a command line, in bytes.
    static let longestMail = 64 << 10
    private static let longestLine = 4096

    private(set) var isOver = false
    private var state = State.commands
    private var partial: [UInt8] = []
    private var sender: String?
    private var recipients: [String] = []
    private var content: [UInt8] = []
    private var isTooLong = false
    private var caught: [CaughtMail] = []

    /// Processes input and returns the answer to it.
    mutating func take(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var answer: [UInt8] = []
        for byte in bytes where !isOver {
            guard byte == 0x0a else {
                // Longer lines are cut: such a mail is refused as a whole, and no command is that
                // long.
                if partial.count < Self.longestMail { partial.append(byte) }
                continue
            }
            if partial.last == 0x0d { partial.removeLast() }
            let line = partial
            partial = []
            if let text = state == .content ? add(line) : command(line) { answer += Array("\(text)\r\n".utf8) }
        }
        return answer
    }

    /// Returns the mails that arrived since the last call.
    mutating func mails() -> [CaughtMail] {
        defer { caught = [] }
        return caught
    }

    private mutating func command(_ line: [UInt8]) -> String? {
        guard line.count <= Self.longestLine else { return refusal("500 the line is too long") }
        let text = String(decoding: line, as: UTF8.self)
        let word = text.prefix { $0 != " " }.uppercased()
        let rest = text.dropFirst(word.count).drop { $0 == " " }
        switch word {
        case "HELO": return "250 localhost"
        case "EHLO": return "250-localhost\r\n250-8BITMIME\r\n250-PIPELINING\r\n250 SIZE \(Self.longestMail)"
        case "MAIL":
            guard sender == nil, let path = Self.path(rest, after: "FROM:") else { return "501 MAIL FROM:<address>" }
            sender = path
            return "250 ok"
        case "RCPT":
            guard sender != nil else { return "503 MAIL first" }
            guard let path = Self.path(rest, after: "TO:"), !path.isEmpty else { return "501 RCPT TO:<address>" }
            guard recipients.count < 100 else { return "452 too many recipients" }
            recipients.append(path)
            return "250 ok"
        case "DATA":
            guard !recipients.isEmpty else { return "503 RCPT first" }
            state = .content
            return "354 send the message, then a line with a dot"
        case "RSET":
            reset()
            return "250 ok"
        case "NOOP": return "250 ok"
        case "QUIT":
            isOver = true
            return "221 bye"
        case "AUTH", "BDAT", "ETRN", "EXPN", "HELP", "STARTTLS", "VRFY": return "502 command not implemented"
        default: return refusal("500 unknown command")
        }
    }

    private mutating func refusal(_ answer: String) -> String {
        isOver = true
        return answer
    }

    private mutating func add(_ line: [UInt8]) -> String? {
        guard line == [UInt8(ascii: ".")] else {
            let line = line.first == UInt8(ascii: ".") ? line.dropFirst() : line[...]
            isTooLong = isTooLong || content.count + line.count > Self.longestMail
            if !isTooLong { content += line + [0x0a] }
            return nil
        }
        defer { reset() }
        guard !isTooLong else { return "552 the mail is too long" }
        caught += recipients.map { CaughtMail(content, to: $0) }
        return "250 stored"
    }

    private mutating func reset() {
        (state, sender, recipients, content, isTooLong) = (.commands, nil, [], [], false)
    }

    /// Parses an address, such as `FROM:<a@b> SIZE=1`.
    private static func path(_ text: Substring, after word: String) -> String? {
        guard text.prefix(word.count).uppercased() == word else { return nil }
        let rest = text.dropFirst(word.count).drop { $0 == " " }
        guard rest.first == "<", let end = rest.firstIndex(of: ">") else { return nil }
        return String(rest[rest.index(after: rest.startIndex)..<end])
    }
}
