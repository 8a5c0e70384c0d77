import CNghttp2
import HTTP

/// The protocol session of a server's connection, which ALPN decides. Both kinds record the same
/// events, with one stream for each request. So everything behind a session is shared: limits,
/// deadlines, held requests, admission and drain.
enum ServerSession {
    case http2(Session)
    case http1(HTTP1Session)

    /// Appends the bytes to send, until `output` has about `enough` or there are no more. Returns
    /// false after a failure that ends the connection.
    func send(into output: inout [UInt8], enough: Int) -> Bool {
        switch self {
        case .http2(let session): return session.send(into: &output, enough: enough)
        case .http1(let session):
            session.send(into: &output, enough: enough)
            return true
        }
    }

    /// Whether the connection can end: nothing more is expected, and nothing is left to send.
    var isFinished: Bool {
        switch self {
        case .http2(let session): session.isFinished
        case .http1(let session): session.isFinished
        }
    }

    /// Returns the charges for header blocks since the last call.
    func takeHeaderCharges() -> Int {
        switch self {
        case .http2(let session): session.takeHeaderCharges()
        case .http1(let session): session.takeHeaderCharges()
        }
    }

    /// - Parameter length: the number of bytes of the body; for HEAD, of the body that GET has.
    func submitResponse(_ stream: Int32, _ response: Response, length: Int, date: [UInt8], source: BodySource) {
        switch self {
        case .http2(let session):
            session.submitResponse(stream, response, length: length, date: date, source: source)
        case .http1(let session):
            session.submitResponse(stream, response, length: length, date: date, source: source)
        }
    }

    /// Resets a stream. HTTP/1.1 can only end the connection.
    func submitReset(_ stream: Int32, _ code: nghttp2_error_code) {
        switch self {
        case .http2(let session): session.submitReset(stream, code)
        case .http1(let session): session.end()
        }
    }

    /// Ends the session after what was submitted. HTTP/2 sends a GOAWAY with this code.
    func terminate(_ code: nghttp2_error_code) {
        switch self {
        case .http2(let session): session.terminate(code)
        case .http1(let session): session.end()
        }
    }

    // MARK: The drain

    /// Begins the drain. Over HTTP/1.1 the next answer is the last one, and an idle connection ends;
    /// that replaces the PING and the notices of HTTP/2.
    func beginDrain() {
        if case .http1(let session) = self { session.beginDrain() }
    }

    func submitPing(_ payload: UInt64) {
        if case .http2(let session) = self { session.submitPing(payload) }
    }

    func submitShutdownNotice() {
        if case .http2(let session) = self { session.submitShutdownNotice() }
    }

    /// The last stream that was processed or is being processed.
    var lastProcessed: Int32 {
        switch self {
        case .http2(let session): session.lastProcessed
        case .http1(let session): session.stream
        }
    }

    /// Refuses the streams above `lastStream`. Over HTTP/1.1, that is a request whose head has not
    /// come.
    func submitGoAway(_ code: UInt32, lastStream: Int32) {
        switch self {
        case .http2(let session): session.submitGoAway(code, lastStream: lastStream)
        case .http1(let session): session.refuseFurtherRequests()
        }
    }
}
