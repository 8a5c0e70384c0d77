import CNghttp2
import EventLoop
import HTTP

/// The progress of a connection's drain.
enum DrainState {
    case none
    /// Requests are still served: the client has open streams, or a PING is to show whether it has sent one.
    case serving
    /// The shutdown notice is out, with a PING behind it: streams that were on their way are still served.
    case noticed
    /// The last GOAWAY is out; what is open ends, and the connection with it.
    case final
}

/// The drain of a server's connection, which loses no client a request.
///
/// A shutdown notice (GOAWAY that refuses nothing), a round trip, the last GOAWAY; then the open
/// streams end. Many clients give up all open requests at the first GOAWAY that they read. So the
/// notice waits for the open streams, at most one step, and goes out together with the end of the
/// last one. A client without a stream may be sending a request right now: it gets a PING first. A
/// client that does not answer the PING does not read: the last GOAWAY tells it that a later
/// request was not looked at.
extension ServerConnection {
    static let drainPing: UInt64 = 0x7477_6f65_6661_7921

    /// Requests that are held are answered now.
    func beginDrain() {
        guard drain == .none else { return }
        guard let session else {
            // The handshake is not over.
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

    /// The last open stream has ended.
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
