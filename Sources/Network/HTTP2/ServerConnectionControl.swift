import CNghttp2
import EventLoop
import HTTP

/// The actions that a `ConnectionController` can take. They have no effect on a connection that is
/// frozen or has ended.
extension ServerConnection {
    /// Changes the number of streams that the client may have open. Streams above it are refused,
    /// also those on their way.
    public func announce(streams: UInt32) {
        guard case .http2(let session)? = session else { return }
        allowedStreams = Int(streams)
        session.submitSettings([], streams: streams)
        flushSoon()
    }

    /// Sends GOAWAY. Streams above `lastStream` are not handled, even if they have arrived already;
    /// the controller sees only those that it has seen before. Open streams may end, and then the
    /// connection ends.
    public func goAway(lastStream: Int32, _ code: ErrorCode = .noError) {
        guard let (session, lastStream) = state.goAway(lastStream: lastStream) else { return }
        session.submitGoAway(code.rawValue, lastStream: lastStream)
        flushSoon()
    }

    public func reset(_ stream: Int32, _ code: ErrorCode) {
        guard let stream = streams[stream] else { return }
        reset(stream, nghttp2_error_code(code.rawValue))
        flushSoon()
    }

    /// Answers a stream that `handle` left open.
    public func answer(_ stream: Int32, _ response: Response) {
        guard let stream = streams[stream] else { return }
        answer(stream, response)
        flushSoon()
    }

    /// Keeps the socket open, but stops reading and writing. This simulates a half-open connection
    /// to a peer that has disappeared. Requests that have arrived in the same read are not handled.
    public func freeze() {
        if state.freeze() { link.freeze() }
    }

    /// Resets the TCP connection, without sending anything before.
    public func cut() { link.reset() }
}
