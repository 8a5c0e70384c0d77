import CNghttp2
import EventLoop
import HTTP

/// The drain of a server's connection. It loses no request of a client. `ServerConnectionState`
/// decides each step; this extension carries it out.
///
/// Sequence: a shutdown notice (a GOAWAY that refuses nothing), one round trip, the last GOAWAY;
/// then the open streams end. Many clients abandon all open requests at the first GOAWAY that they
/// read. So the notice waits for the open streams, at most one step, and leaves together with the
/// end of the last one. A client without a stream may be sending a request at this moment, so it
/// gets a PING first. A client that does not answer the PING does not read either. If it sends a
/// request later, the last GOAWAY shows that the request was not processed. Tests: `DrainTests`,
/// `ServerConnectionStateTests`.
extension ServerConnection {
    static let drainPing: UInt64 = 0x7477_6f65_6661_7921

    /// Begins the drain when the server stops. A client that is connecting gets one step to complete
    /// its handshake. It then reads a GOAWAY and connects again, to a server that does not stop. If
    /// its connection were closed now, it would be a failure to the client.
    func beginDrainForStop() {
        guard state.isConnecting else { return beginDrain() }
        drainsOnceOpen = true
        loop.schedule(after: limits.drainStep) { [weak self] in
            if let self, state.isConnecting { link.end(.finished) }
        }
    }

    /// Begins the drain. Held requests are answered now.
    func beginDrain() { perform(state.beginDrain(hasStreams: !streams.isEmpty)) }

    func lastStreamEnded() { perform(state.lastStreamEnded()) }

    func drainPingAcknowledged() {
        perform(state.drainPingAcknowledged(hasStreams: !streams.isEmpty, lastProcessed: lastProcessed))
    }

    /// Refuses all streams that are not processed yet, and ends when the open ones have ended.
    func refuseFurtherStreams() { perform(state.refuseStreams(above: lastProcessed)) }

    private var lastProcessed: Int32 { session?.lastProcessed ?? 0 }

    private func perform(_ action: ServerConnectionState<ServerSession>.DrainAction) {
        switch action {
        case .none: break
        case .end: link.end(.finished)
        case .serve(let session, let ping):
            session.beginDrain()
            for stream in streams.values {
                stream.exchange?.finishHolding()
                if stream.isDropping { resetAnswered(stream) }
            }
            if ping {
                session.submitPing(Self.drainPing)
                flushSoon()
            }
            scheduleDrainStep(.serving)
        case .sendNotice(let session):
            session.submitShutdownNotice()
            session.submitPing(Self.drainPing)
            flushSoon()
            scheduleDrainStep(.noticed)
        case .sendGoAway(let session, let lastStream):
            session.submitGoAway(NGHTTP2_NO_ERROR.rawValue, lastStream: lastStream)
            flushSoon()
        }
    }

    private func scheduleDrainStep(_ step: DrainState) {
        loop.schedule(after: limits.drainStep) { [weak self] in
            guard let self else { return }
            perform(state.drainStepElapsed(step, hasStreams: !streams.isEmpty, lastProcessed: lastProcessed))
        }
    }
}
