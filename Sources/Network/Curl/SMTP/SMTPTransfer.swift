/// A mail to send.
public struct SMTPTransfer: Sendable {
    /// The envelope's sender and recipient: plain ASCII.
    public var from: String
    public var to: String
    /// Header and body; every line ends with CR LF. The escapes that SMTP requires are added during
    /// the transfer.
    public var data: [UInt8]
    /// The time from the start to the outcome.
    public var deadline: Duration
    /// On whose behalf it is sent. Mails that wait for a connection are taken from each owner in
    /// turn.
    public var owner: String

    public init(from: String, to: String, data: [UInt8], deadline: Duration = .seconds(20), owner: String = "") {
        self.owner = owner
        self.from = from
        self.to = to
        self.data = data
        self.deadline = deadline
    }

    /// Whether the addresses can be sent in SMTP.
    var isSayable: Bool {
        [from, to].allSatisfy { address in
            !address.isEmpty && address.utf8.count <= 320
                && address.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x3c && $0 != 0x3e }
        }
    }
}

/// A reply of the server: its code and its text, shortened and printable.
public struct SMTPReply: Sendable, Equatable, CustomStringConvertible {
    public let code: Int
    public let text: String

    public init(code: Int, text: String) {
        self.code = code
        self.text = text
    }

    public var description: String { text.isEmpty ? "\(code)" : "\(code) \(text)" }
}

/// The phase that an SMTP conversation has reached.
public enum SMTPPhase: String, Sendable {
    case connection, hello, starttls, login, sender, recipient, data, content
}

/// The reason why a mail was not sent.
public struct SMTPFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Cause: Sendable, Equatable {
        /// The server refused it; `reply` has its answer.
        case refused
        /// The addresses cannot be sent in SMTP.
        case malformed
        /// Too many mails wait already.
        case busy
        case unknownHost
        /// No connection, or no TLS over it. A server that restarts may also cause this.
        case unreachable
        /// The server offers no TLS and is not on this machine.
        case insecure
        /// The server's certificate is not trusted.
        case untrusted
        case deadline
        /// The client is closing.
        case cancelled
        /// The connection broke, or the server does not speak SMTP.
        case broken
    }

    public let cause: Cause
    /// The phase of the last command.
    public let stage: SMTPPhase
    public let reply: SMTPReply?
    /// Whether the server may have accepted the mail: all of it was sent, and its final reply was
    /// not received.
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
