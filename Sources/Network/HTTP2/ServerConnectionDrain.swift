import CNghttp2
import EventLoop
import HTTP

/// The progress of a connection's drain.
enum DrainState {
    case none
    /// Requests are still served. Either the client has open streams, or a PING has to show whether
    /// it has sent one.
    case serving
    /// The shutdown notice and a PING were sent. Streams that were on their way are still served.
    case noticed
    /// The last GOAWAY was sent. The open streams may end, and then the connection ends.
    case final
}

/// The drain of a server's connection. It loses no request of a client.
///
/// Sequence: a shutdown notice (a GOAWAY that refuses nothing), one round trip, the last GOAWAY;
/// then the open streams end. Many clients abandon all open requests at the first GOAWAY that they
/// read. So the notice waits for the open streams, at most one step, and leaves together with the
/// end of the last one. A client without a stream may be sending a request at this moment, so it
/// gets a PING first. A client that does not answer the PING does not read either. If it sends a
/// request later, the last GOAWAY shows that the request was not processed. Tests: `DrainTests`.
extension ServerConnection {
    static let drainPing: UInt64 = 0x7477_6f65_6661_7921

    /// Begins the drain. Held requests are answered now.
    func beginDrain() {
        guard drain == .none else { return }
        guard let session else {
            // The handshake is not complete.
            link.end(.finished)
            return
        }
        drain = .serving
        inspector.ignoresUnknownStreams = true
        for stream in streams.values {
            stream.exchange?.finishHolding()
            if stream.isDropping { resetAnswered(stream) }
        }
        if streams.isEmpty {
            session.submitPing(Self.drainPing)
            flushSoon()
        }
        loop.schedule(after: limits.drainStep) { [weak self] in
            guard let self, drain == .serving else { return }
            if streams.isEmpty { finalGoAway() } else { noticeShutdown() }
        }
    }

    /// Continues the drain when the last open stream has ended.
    func streamsEnded() {
        if drain == .serving { noticeShutdown() }
    }

    func drainPingCame() {
        switch drain {
        case .serving where streams.isEmpty: noticeShutdown()
        case .noticed: finalGoAway()
        case .none, .serving, .final: break
        }
    }

    private func noticeShutdown() {
        guard let session else { return }
        drain = .noticed
        session.submitShutdownNotice()
        session.submitPing(Self.drainPing)
        flushSoon()
        loop.schedule(after: limits.drainStep) { [weak self] in
            if self?.drain == .noticed { self?.finalGoAway() }
        }
    }

    func finalGoAway() {
        guard let session else { return }
        drain = .final
        lastStream = min(lastStream, session.lastProcessed)
        session.submitGoAway(NGHTTP2_NO_ERROR.rawValue, lastStream: lastStream)
        flushSoon()
    }
}
