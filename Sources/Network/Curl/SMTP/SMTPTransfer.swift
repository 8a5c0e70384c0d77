/// A mail to hand in.
public struct SMTPTransfer: Sendable {
    /// The envelope's sender and recipient: plain ASCII.
    public var from: String
    public var to: String
    /// Header and body, every line ended by CR LF. What SMTP wants escaped is escaped on the way.
    public var data: [UInt8]
    /// From here to the outcome, whatever happens.
    public var deadline: Duration

    public init(from: String, to: String, data: [UInt8], deadline: Duration = .seconds(20)) {
        self.from = from
        self.to = to
        self.data = data
        self.deadline = deadline
    }

    /// Whether it can be said to a server at all.
    var isSayable: Bool {
        [from, to].allSatisfy { address in
            !address.isEmpty && address.utf8.count <= 320
                && address.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x3c && $0 != 0x3e }
        }
    }
}

/// What the server said: the code, and its words, cut short and printable.
public struct SMTPReply: Sendable, Equatable, CustomStringConvertible {
    public let code: Int
    public let text: String

    public init(code: Int, text: String) {
        self.code = code
        self.text = text
    }

    public var description: String { text.isEmpty ? "\(code)" : "\(code) \(text)" }
}

/// What a conversation had come to.
public enum SMTPPhase: String, Sendable {
    case connection, hello, starttls, login, sender, recipient, data, content
}

/// Why a mail was not handed in.
public struct SMTPFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Cause: Sendable, Equatable {
        /// The server said no; what it said is in `reply`.
        case refused
        /// The addresses are none that can be said.
        case malformed
        /// Too many wait already.
        case busy
        case unknownHost
        /// No connection, or no TLS over it: a server that is being restarted breaks that off, too.
        case unreachable
        /// The server has no TLS, and it does not stand on this machine.
        case insecure
        /// The server could not prove who it is.
        case untrusted
        case deadline
        /// We are closing.
        case cancelled
        /// The connection broke, or what came over it is no SMTP.
        case broken
    }

    public let cause: Cause
    /// The last that was said.
    public let stage: SMTPPhase
    public let reply: SMTPReply?
    /// Whether the server may have taken the mail: all of it was given, and what became of it was not heard.
    public let mayHaveArrived: Bool
    public let reason: String

    public init(
        _ cause: Cause, at stage: SMTPPhase = .connection, reply: SMTPReply? = nil, mayHaveArrived: Bool = false,
        _ reason: String
    ) {
        self.cause = cause
        self.stage = stage
        self.reply = reply
        self.mayHaveArrived = mayHaveArrived
        self.reason = reason
    }

    public var description: String {
        guard let reply else { return "\(stage.rawValue): \(reason)" }
        return cause == .refused ? "\(stage.rawValue): \(reply)" : "\(stage.rawValue): \(reason), after \(reply)"
    }
}
