import COpenSSL
import Crypto
import EventLoop
import Glibc

/// A TLS session over one non-blocking socket.
///
/// Each call returns an outcome: it is complete, or it is incomplete and names the events to wait
/// for, or it has failed. `incomplete` is not a failure. A read may need to write and a write may
/// need to read, because TLS changes its keys at any time.
///
/// Invariants: the caller owns the socket, and closes it only after this object is gone. OpenSSL's
/// error queue belongs to the thread; so it is empty before each call, and errors of one session
/// are never reported for another one. After a fatal error no further TLS message is sent.
///
/// Risk: after `.incomplete`, a write must be repeated with the same bytes, or OpenSSL fails. A
/// read may leave bytes in OpenSSL that the socket does not report again (`hasPending`). Tests:
/// `TLSTests`, `TLSCostTests`; in a server `KeyUpdateTests`.
public final class TLSSession {
    public enum Handshake {
        case complete
        case incomplete(Interest)
        case failed(TLSFailure)
    }

    public enum Read {
        case bytes(Int)
        case incomplete(Interest)
        /// The peer has ended its side with close_notify.
        case closed
        case failed(TLSFailure)
    }

    public enum Write {
        case bytes(Int)
        case incomplete(Interest)
        case failed(TLSFailure)
    }

    let session: OpaquePointer
    /// Kept alive, because the callbacks point to them.
    let server: TLSServerContext?
    private let client: TLSClientContext?
    private let application: Application
    private var broken = false
    /// The number of times that the client has changed its keys, or has tried to renegotiate.
    /// Counted for servers only.
    public internal(set) var keyUpdates = 0
    /// The client after a full handshake, if it may resume its session.
    var verified: ResumableSessions.Client?
    /// The session that the client wants to resume. OpenSSL may decide for a full handshake yet.
    var resumed: ResumableSessions.Record?
    /// The number of sessions that the client may still name.
    var lookups = TLSSession.mostLookups
    /// The most sessions that a client may name in a handshake. A ClientHello has room for more than a
    /// thousand, and each one costs a look-up before the client has proved anything.
    static let mostLookups = 4
    /// The certificate of the client that was not accepted.
    var refused: RefusedCertificate?

    public init(server context: TLSServerContext, fd: Int32) throws(TLSFailure) {
        application = context.application
        session = try Self.make(context.context, fd)
        server = context
        client = nil
        // For the callbacks. The pointer stays valid, because this object frees the session.
        SSL_set_ex_data(session, 0, Unmanaged.passUnretained(self).toOpaque())
        SSL_set_accept_state(session)
    }

    /// Makes the client's side of a session.
    /// - Parameter host: the name or address that the certificate of the server must have.
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
            return application != .http2 || speaksHTTP2
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

    /// Clears the error queue, so that old errors are not mistaken for errors of this call. A check
    /// of an empty queue costs far less than clearing it.
    private func forgetErrors() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// Writes bytes. After `.incomplete` the next call must begin with the same bytes; their
    /// address may differ.
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

    /// Whether OpenSSL may hold bytes that the socket does not report again.
    public var hasPending: Bool { SSL_has_pending(session) == 1 }

    /// Sends close_notify, if the socket takes it now.
    public func shutdown() {
        // OpenSSL forbids it after a fatal error, and during a handshake there is nothing to end.
        guard !broken, SSL_is_init_finished(session) == 1 else { return }
        ERR_clear_error()
        SSL_shutdown(session)
        ERR_clear_error()
    }

    /// The verified certificate of the client behind a server's session; nil if it sent none.
    public var peer: PeerCertificate? {
        guard let server else { return nil }
        return verifiedClient?.peer ?? (isResumed ? nil : server.peer(of: session))
    }

    /// Whether the client may name another session.
    func takeLookup() -> Bool {
        lookups -= 1
        return lookups >= 0
    }

    /// The client that was verified, in this handshake or in the one that the session goes back to.
    var verifiedClient: ResumableSessions.Client? { isResumed ? resumed?.client : verified }

    /// Whether the handshake resumed an earlier session.
    public var isResumed: Bool { SSL_session_reused(session) == 1 }

    /// The verified certificate of the server behind a client's session; nil before the handshake
    /// is complete.
    public var serverCertificate: Certificate? {
        guard client != nil, SSL_is_init_finished(session) == 1,
            let certificate = SSL_get0_peer_certificate(session)
        else { return nil }
        return try? Certificate(reading: certificate)
    }

    /// The protocol version, for example `TLSv1.3`.
    public var version: String { String(cString: SSL_get_version(session)) }

    /// Whether this is the server's side.
    public var isServer: Bool { server != nil }

    /// Whether the peers speak HTTP/1.1 after the handshake.
    public var isHTTP1: Bool { application == .http && !speaksHTTP2 }

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
            // A resumed session was not verified again.
            let verdict = isResumed ? Int(X509_V_OK) : SSL_get_verify_result(session)
            guard verdict != Int(X509_V_OK) else { return .failed(collected) }
            // The error queue does not say which check of the certificate failed.
            let reason = String(cString: X509_verify_cert_error_string(verdict))
            return .failed(TLSFailure(what, collected.reasons + [reason], certificate: refused))
        }
    }

    /// The session to which an `SSL *` of a server belongs.
    static func owner(of session: OpaquePointer) -> TLSSession? {
        SSL_get_ex_data(session, 0).map { Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue() }
    }
}
