import CCurl

/// One mail on its way, as far as it has come.
final class RunningMail {
    private let data: [UInt8]
    private let needsLoopback: Bool
    private var given = 0
    /// All of it is given: the final dot follows.
    private var isWhole = false
    private var isOver = false
    private var stage = SMTPPhase.connection
    /// To the last that was said.
    private var code = 0
    private var words: [UInt8] = []
    private var isRefusedAddress = false

    init(_ data: [UInt8], needsLoopback: Bool) {
        self.data = data
        self.needsLoopback = needsLoopback
    }

    // MARK: What libcurl tells

    func mayConnect(to address: UnsafeRawBufferPointer) -> Bool {
        guard needsLoopback else { return true }
        isRefusedAddress = !AddressGuard.isLoopback(socketAddress: address)
        return !isRefusedAddress
    }

    private static let verbs: [(verb: String, stage: SMTPPhase)] = [
        ("EHLO", .hello), ("HELO", .hello), ("STARTTLS", .starttls), ("AUTH", .login), ("MAIL FROM", .sender),
        ("RCPT TO", .recipient), ("DATA", .data),
    ]

    /// A line of ours. What is none of the verbs goes on with a login.
    func said(_ line: UnsafeRawBufferPointer) {
        // What is said about this mail is said before it.
        if line.starts(with: "QUIT".utf8) { isOver = true }
        guard !isOver else { return }
        if let verb = Self.verbs.first(where: { line.starts(with: $0.verb.utf8) }) { stage = verb.stage }
        (code, words) = (0, [])
    }

    private static let longest = 300

    /// A line of the server's, of which several may make one answer.
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
        // What was said up to now is answered; now the content is.
        if stage != .content { (stage, code, words) = (.content, 0, []) }
        let count = min(buffer.count, data.count - given)
        buffer.copyBytes(from: data[given..<given + count])
        given += count
        // With the last of it: told how long it is, libcurl asks for no more, and the dot follows.
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
        // Whatever libcurl makes of it, what the server said is what is wrong.
        if self.code >= 400 { return .failure(failure(.refused, "the server refused it")) }
        let text = String(cString: curl_easy_strerror(code))
        let (cause, reason): (SMTPFailure.Cause, String) =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST: (.unknownHost, text)
            case CURLE_COULDNT_CONNECT where isRefusedAddress:
                (.insecure, "the host is not on this machine, and without TLS nothing is said to another one")
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
        // Only a no is certain: any other answer to the content that is not the last word may have been a yes.
        SMTPFailure(cause, at: stage, reply: reply, mayHaveArrived: isWhole && code < 400, reason)
    }
}

extension SMTPFailure {
    /// Nothing was wrong but the connection, and another one may do.
    var isOfTheConnection: Bool {
        guard !mayHaveArrived else { return false }
        return cause == .broken || cause == .refused && reply?.code == 421
    }
}
