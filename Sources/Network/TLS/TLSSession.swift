import COpenSSL
import EventLoop
import Glibc

/// TLS over one socket that does not block. Not having got on for now is an outcome, apart from
/// failure. The socket belongs to the caller, who closes it after this is gone.
public final class TLSSession {
    public enum Handshake {
        case complete
        case incomplete(Interest)
        case failed(TLSFailure)
    }

    public enum Read {
        case bytes(Int)
        case incomplete(Interest)
        /// The peer has ended its side in order.
        case closed
        case failed(TLSFailure)
    }

    public enum Write {
        case bytes(Int)
        case incomplete(Interest)
        case failed(TLSFailure)
    }

    let session: OpaquePointer
    /// Keep alive what the callbacks point to.
    private let server: TLSServerContext?
    private let client: TLSClientContext?
    private let application: Application
    private var broken = false
    /// Number of times that the client of a server's session has changed its keys, or tried to
    /// renegotiate.
    public internal(set) var keyUpdates = 0

    public init(server context: TLSServerContext, fd: Int32) throws(TLSFailure) {
        application = context.application
        session = try Self.make(context.context, fd)
        server = context
        client = nil
        SSL_set_accept_state(session)
    }

    /// `host` is the name, or the address, that the server's certificate must be for.
    public init(client context: TLSClientContext, fd: Int32, host: String) throws(TLSFailure) {
        application = context.application
        session = try Self.make(context.context, fd)
        server = nil
        client = context
        SSL_set_connect_state(session)
        try context.expect(host, on: session)
    }

    deinit { SSL_free(session) }

    private static func make(_ context: OpaquePointer, _ fd: Int32) throws(TLSFailure) -> OpaquePointer {
        ERR_clear_error()
        guard let session = SSL_new(context) else { throw .collected("TLS session") }
        guard SSL_set_fd(session, fd) == 1 else {
            SSL_free(session)
            throw .collected("TLS session")
        }
        return session
    }

    public func handshake() -> Handshake {
        ERR_clear_error()
        let result = SSL_do_handshake(session)
        if result == 1 {
            if server != nil { countKeyUpdates() }
            return application == .unnamed || speaksHTTP2
                ? .complete : .failed(TLSFailure("handshake", ["the peer does not offer HTTP/2"]))
        }
        switch outcome(of: result, "handshake") {
        case .incomplete(let interest): return .incomplete(interest)
        case .closed: return .failed(TLSFailure("handshake", ["closed by the peer"]))
        case .failed(let failure): return .failed(failure)
        }
    }

    public func read(into buffer: UnsafeMutableRawBufferPointer) -> Read {
        forgetErrors()
        var count = 0
        let result = SSL_read_ex(session, buffer.baseAddress, buffer.count, &count)
        if result == 1 { return .bytes(count) }
        switch outcome(of: result, "read") {
        case .incomplete(let interest): return .incomplete(interest)
        case .closed: return .closed
        case .failed(let failure): return .failed(failure)
        }
    }

    /// What stands in the thread's queue would be taken for this call's failure. To clear it costs
    /// far more than to see that nothing stands there.
    private func forgetErrors() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// After `.incomplete` the next call must begin with the same bytes, wherever they stand.
    public func write(_ buffer: UnsafeRawBufferPointer) -> Write {
        forgetErrors()
        var count = 0
        let result = SSL_write_ex(session, buffer.baseAddress, buffer.count, &count)
        if result == 1 { return .bytes(count) }
        switch outcome(of: result, "write") {
        case .incomplete(let interest): return .incomplete(interest)
        case .closed: return .failed(TLSFailure("write", ["closed by the peer"]))
        case .failed(let failure): return .failed(failure)
        }
    }

    /// Whether there may be more to read that the socket no longer tells of.
    public var hasPending: Bool { SSL_has_pending(session) == 1 }

    /// Tells the peer that nothing more will come, as far as the socket takes it now.
    public func shutdown() {
        // After a fatal error OpenSSL forbids it, and within a handshake there is nothing to end.
        guard !broken, SSL_is_init_finished(session) == 1 else { return }
        ERR_clear_error()
        SSL_shutdown(session)
        ERR_clear_error()
    }

    /// The client behind a server's session, once its certificate has been verified. Nil if it gave
    /// none.
    public var peer: PeerCertificate? { server?.peer(of: session) }

    /// `TLSv1.3`
    public var version: String { String(cString: SSL_get_version(session)) }

    private var speaksHTTP2: Bool {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(session, &name, &length)
        guard length == 2, let name else { return false }
        return name[0] == UInt8(ascii: "h") && name[1] == UInt8(ascii: "2")
    }

    private enum Stopped {
        case incomplete(Interest)
        case closed
        case failed(TLSFailure)
    }

    private func outcome(of result: Int32, _ what: String) -> Stopped {
        let code = errno
        switch SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ: return .incomplete(.read)
        case SSL_ERROR_WANT_WRITE: return .incomplete(.write)
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            broken = true
            let collected = TLSFailure.collected(what)
            guard collected.reasons.isEmpty else { return .failed(collected) }
            return .failed(TLSFailure(what, [code == 0 ? "connection ended" : String(cString: strerror(code))]))
        default:
            broken = true
            let collected = TLSFailure.collected(what)
            let verdict = SSL_get_verify_result(session)
            guard verdict != Int(X509_V_OK) else { return .failed(collected) }
            // Which of the checks a certificate failed stands nowhere in the queue.
            let reason = String(cString: X509_verify_cert_error_string(verdict))
            return .failed(TLSFailure(what, collected.reasons + [reason]))
        }
    }
}
