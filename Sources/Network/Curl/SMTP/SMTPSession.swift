import Bytes
import CCurl
import Glibc
import World

/// A handle of libcurl, which keeps its connection from one mail to the next. It belongs to one
/// thread, and blocks it.
final class SMTPSession {
    private let easy: UnsafeMutableRawPointer
    private let server: SMTPServer
    let sockets: OpenSockets
    /// The mail that is being sent; nil if there is none.
    private(set) var mail: RunningMail?

    init?(_ server: SMTPServer, _ sockets: OpenSockets) {
        guard CurlLibrary.isUsable, let easy = curl_easy_init() else { return nil }
        self.easy = easy
        self.server = server
        self.sockets = sockets
    }

    deinit {
        // The clean-up sends QUIT, and would wait for the reply.
        sockets.closing()
        curl_easy_cleanup(easy)
    }

    /// Sends a mail.
    /// - Parameter left: returns the time that remains for it.
    func send(_ transfer: SMTPTransfer, within left: @Sendable () -> Duration) -> Result<SMTPReply, SMTPFailure> {
        let (first, wasKept) = attempt(transfer, within: left(), fresh: false)
        // The server may just have closed a reused connection for its own reasons.
        guard wasKept, case .failure(let failure) = first, failure.isOfTheConnection, !sockets.isClosing else {
            return first
        }
        let rest = left()
        return rest > .zero ? attempt(transfer, within: rest, fresh: true).result : first
    }

    private func attempt(
        _ transfer: SMTPTransfer, within limit: Duration, fresh: Bool
    ) -> (result: Result<SMTPReply, SMTPFailure>, wasKept: Bool) {
        let mail = RunningMail(transfer.data, needsLoopback: !server.wantsTLS)
        self.mail = mail
        defer { self.mail = nil }
        let recipients = curl_slist_append(nil, "<\(transfer.to)>")
        defer { curl_slist_free_all(recipients) }
        guard let recipients, prepare(transfer, recipients, within: limit, fresh: fresh) else {
            return (.failure(SMTPFailure(.malformed, "libcurl refused the mail")), false)
        }
        let code = curl_easy_perform(easy)
        let result = sockets.isClosing && code != CURLE_OK ? mail.cancelled() : mail.outcome(code)
        return (result, ccurl_connects(easy) == 0)
    }

    private func prepare(
        _ transfer: SMTPTransfer, _ recipients: UnsafeMutablePointer<curl_slist>, within limit: Duration, fresh: Bool
    ) -> Bool {
        curl_easy_reset(easy)
        let context = Unmanaged.passUnretained(self).toOpaque()
        let security = server.wantsTLS ? CURLUSESSL_ALL : CURLUSESSL_NONE
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_USE_SSL, Int(security.rawValue)), (CURLOPT_UPLOAD, 1), (CURLOPT_MAXCONNECTS, 1),
            (CURLOPT_TIMEOUT_MS, Int(max(1, limit.wholeMilliseconds))), (CURLOPT_FRESH_CONNECT, fresh ? 1 : 0),
            // Verbose output is read to know the progress. It is not logged.
            (CURLOPT_VERBOSE, 1), (CURLOPT_NOPROGRESS, 0),
        ]
        var texts: [(CURLoption, String)] = [
            (CURLOPT_URL, server.address.text + (server.name.map { "/\($0)" } ?? "")),
            (CURLOPT_PROTOCOLS_STR, "smtp,smtps"), (CURLOPT_MAIL_FROM, "<\(transfer.from)>"),
        ]
        if let login = server.login {
            // Over TLS other mechanisms are no safer, and many servers offer mechanisms for which
            // they have no secrets.
            texts.append((CURLOPT_LOGIN_OPTIONS, "AUTH=PLAIN;AUTH=LOGIN"))
            texts.append((CURLOPT_USERNAME, login.username))
            texts.append((CURLOPT_PASSWORD, String(decoding: login.password.reveal(), as: UTF8.self)))
        }
        var codes = CurlLibrary.prepare(
            easy, extraTrust: server.extraTrust, connectTimeout: min(limit, server.connectTimeout))
        codes += numbers.map { ccurl_set_number(easy, $0, $1) } + texts.map { ccurl_set_text(easy, $0, $1) }
        codes += [
            ccurl_set_pointer(easy, CURLOPT_MAIL_RCPT, recipients),
            ccurl_set_count(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(transfer.data.count)),
            ccurl_set_opener(easy, SMTPCallbacks.open), ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context),
            ccurl_set_closer(easy, SMTPCallbacks.close),
            ccurl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(sockets).toOpaque()),
            ccurl_set_sender(easy, SMTPCallbacks.give), ccurl_set_pointer(easy, CURLOPT_READDATA, context),
            ccurl_set_receiver(easy, CURLOPT_WRITEFUNCTION, SMTPCallbacks.take),
            ccurl_set_listener(easy, SMTPCallbacks.listen), ccurl_set_pointer(easy, CURLOPT_DEBUGDATA, context),
            ccurl_set_progress(easy, SMTPCallbacks.goOn), ccurl_set_pointer(easy, CURLOPT_XFERINFODATA, context),
        ]
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    // MARK: Callbacks of libcurl

    func open(_ address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
        let fd = CurlLibrary.open(address) { mail?.mayConnect(to: $0) ?? false }
        if fd >= 0 { sockets.opened(fd) }
        return fd
    }

    func heard(_ kind: curl_infotype, _ bytes: UnsafeRawBufferPointer) {
        switch kind {
        case CURLINFO_HEADER_OUT:
            // libcurl would wait for the reply, which cannot change anything any more.
            if bytes.starts(with: "QUIT".utf8) { sockets.stopReading() }
            mail?.said(bytes)
        case CURLINFO_HEADER_IN: mail?.answered(bytes)
        default: break
        }
    }
}

/// The callbacks of libcurl. They run on the session's thread, from within `curl_easy_perform` or
/// the clean-up of the handle.
private enum SMTPCallbacks {
    static let open: curl_opensocket_callback = { context, _, address in
        guard let session: SMTPSession = object(context), let address else { return -1 }
        return session.open(address)
    }

    static let close: curl_closesocket_callback = { context, fd in
        guard let sockets: OpenSockets = object(context) else { return Glibc.close(fd) }
        return sockets.close(fd)
    }

    static let give: curl_read_callback = { buffer, size, count, context in
        guard let session: SMTPSession = object(context), let buffer else { return 0 }
        return session.mail?.give(UnsafeMutableRawBufferPointer(start: buffer, count: size * count)) ?? 0
    }

    /// Ignores received data, because SMTP delivers none.
    static let take: curl_write_callback = { _, size, count, _ in size * count }

    static let listen: curl_debug_callback = { _, kind, bytes, count, context in
        let session: SMTPSession? = object(context)
        session?.heard(kind, UnsafeRawBufferPointer(start: bytes, count: count))
        return 0
    }

    /// Returns a value other than 0 to end the transfer.
    static let goOn: curl_xferinfo_callback = { context, _, _, _, _ in
        let session: SMTPSession? = object(context)
        return session?.sockets.isClosing == true ? 1 : 0
    }

    private static func object<Object: AnyObject>(_ pointer: UnsafeMutableRawPointer?) -> Object? {
        pointer.map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
    }
}
