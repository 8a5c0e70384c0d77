import CCurl

/// The state of a mail that is being sent.
final class RunningMail {
    private let data: [UInt8]
    private let needsLoopback: Bool
    private var given = 0
    /// Whether all content was given to libcurl, which then sends the final dot.
    private var isWhole = false
    private var isOver = false
    private var stage = SMTPPhase.connection
    /// The code and text of the reply to the last command.
    private var code = 0
    private var words: [UInt8] = []
    private var isRefusedAddress = false

    init(_ data: [UInt8], needsLoopback: Bool) {
        self.data = data
        self.needsLoopback = needsLoopback
    }

    // MARK: Callbacks of libcurl

    func mayConnect(to address: UnsafeRawBufferPointer) -> Bool {
        guard needsLoopback else { return true }
        isRefusedAddress = !AddressGuard.isLoopback(socketAddress: address)
        return !isRefusedAddress
    }

    private static let verbs: [(verb: String, stage: SMTPPhase)] = [
        ("EHLO", .hello), ("HELO", .hello), ("STARTTLS", .starttls), ("AUTH", .login), ("MAIL FROM", .sender),
        ("RCPT TO", .recipient), ("DATA", .data),
    ]

    /// Records a line that we sent. A line that begins with none of the verbs continues the login.
    func said(_ line: UnsafeRawBufferPointer) {
        // Everything about this mail is sent before QUIT.
        if line.starts(with: "QUIT".utf8) { isOver = true }
        guard !isOver else { return }
        if let verb = Self.verbs.first(where: { line.starts(with: $0.verb.utf8) }) { stage = verb.stage }
        (code, words) = (0, [])
    }

    private static let longest = 300

    /// Records a line from the server. Several lines may form one reply.
    func answered(_ line: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        let digits = line.prefix(3)
        guard digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return }
        code = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        if !words.isEmpty { words.append(0x20) }
        words += line.dropFirst(4).prefix { $0 != 0x0d && $0 != 0x0a }.prefix(max(0, Self.longest - words.count))
            .map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: "?") }
    }

    func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        // All commands before are answered; the next reply concerns the content.
        if stage != .content { (stage, code, words) = (.content, 0, []) }
        let count = min(buffer.count, data.count - given)
        buffer.copyBytes(from: data[given..<given + count])
        given += count
        // True with the last part: libcurl knows the length, so it asks for no more, and sends the
        // dot.
        isWhole = given == data.count
        return count
    }

    // MARK: The end

    private var reply: SMTPReply? {
        code == 0 ? nil : SMTPReply(code: code, text: String(decoding: words, as: UTF8.self))
    }

    func cancelled() -> Result<SMTPReply, SMTPFailure> { .failure(failure(.cancelled, "closed")) }

    func outcome(_ code: CURLcode) -> Result<SMTPReply, SMTPFailure> {
        if code == CURLE_OK { return .success(reply ?? SMTPReply(code: 250, text: "")) }
        // Whatever error libcurl reports, the server's refusal is the cause.
        if self.code >= 400 { return .failure(failure(.refused, "the server refused it")) }
        let text = String(cString: curl_easy_strerror(code))
        let (cause, reason): (SMTPFailure.Cause, String) =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST: (.unknownHost, text)
            case CURLE_COULDNT_CONNECT where isRefusedAddress:
                (.insecure, "TLS is required for a server on another machine")
            case CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR: (.unreachable, text)
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE: (.untrusted, text)
            case CURLE_USE_SSL_FAILED: (.insecure, "the server does not offer STARTTLS")
            case CURLE_OPERATION_TIMEDOUT:
                stage == .connection && self.code == 0
                    ? (.unreachable, "no connection, or no greeting, in time") : (.deadline, "no answer in time")
            default: (.broken, text)
            }
        return .failure(failure(cause, reason))
    }

    private func failure(_ cause: SMTPFailure.Cause, _ reason: String) -> SMTPFailure {
        // Only a negative final reply is certain. After any other reply to the content, the mail
        // may have been accepted.
        SMTPFailure(cause, at: stage, reply: reply, mayHaveArrived: isWhole && code < 400, reason)
    }
}

extension SMTPFailure {
    /// Whether only the connection failed, so that another connection may succeed.
    var isOfTheConnection: Bool {
        guard !mayHaveArrived else { return false }
        return cause == .broken || cause == .refused && reply?.code == 421
    }
}
