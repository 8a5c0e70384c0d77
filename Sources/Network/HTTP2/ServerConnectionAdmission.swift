import EventLoop
import Log

/// The connection's side of admission: it reports its identity, and ends when the table decides
/// that.
extension ServerConnection {
    func bindTicket() {
        let bound = LoopBound(self, on: loop)
        ticket?.onEnd { reason in bound.value.end(reason) }
    }

    private func end(_ reason: AdmissionTable.Reason) {
        log.debug("connection.ended", [.remote: remote, .reason: reason.rawValue])
        switch reason {
        // Requests in progress are still answered.
        case .request, .lifetime: beginDrain()
        default: abort()
        }
    }

    /// Queues the handshake, because its first byte has come.
    func transportHasFirstByte() {
        state.firstByteArrived(at: loop.now)
        server.queueHandshake(self)
    }

    /// Called when its turn among the handshakes of the loop has come. Takes a handshake from the
    /// budget of its source, if the connection is still open.
    func takeHandshake() -> HandshakeDecision {
        guard state.isLive else { return .drop }
        return ticket?.takeHandshake() ?? .begin
    }

    func beginHandshake() {
        guard let waited = state.handshakeBegan(at: loop.now) else { return }
        clock.handshakeWaited(waited)
        link.beginHandshake()
    }
}
