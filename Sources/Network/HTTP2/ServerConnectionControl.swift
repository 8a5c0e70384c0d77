import CNghttp2
import EventLoop
import HTTP

/// What a `ConnectionController` can have done. On a connection that has ended nothing comes of it.
extension ServerConnection {
    /// How many streams the client may have from when it hears of it. What is above that and on its way is refused.
    public func announce(streams: UInt32) {
        guard let session else { return }
        allowedStreams = Int(streams)
        session.submitSettings([], streams: streams)
        flushSoon()
    }

    /// Streams above `lastStream` are not processed, also those that have come already: the keeper does not hear of them
    /// unless it has already. Those that stand are let end, and the connection with them.
    public func goAway(lastStream: Int32, _ code: ErrorCode = .noError) {
        guard let session else { return }
        self.lastStream = min(lastStream, self.lastStream)
        inspector.ignoresUnknownStreams = true
        session.submitGoAway(code.rawValue, lastStream: self.lastStream)
        flushSoon()
    }

    public func reset(_ stream: Int32, _ code: ErrorCode) {
        guard let stream = streams[stream] else { return }
        reset(stream, nghttp2_error_code(code.rawValue))
        flushSoon()
    }

    /// For a stream that was left open.
    public func answer(_ stream: Int32, _ response: Response) {
        guard let stream = streams[stream] else { return }
        answer(stream, response)
        flushSoon()
    }

    /// Lets the socket stand, and neither reads nor writes any more: half of a connection whose other half has gone.
    public func freeze() {
        lastStream = 0
        link.freeze()
    }

    /// Ends it by a TCP reset, without a word.
    public func cut() { link.reset() }
}
