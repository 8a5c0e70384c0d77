import EventLoop
import Log

/// A connection's part in admission: it says whose it is, and ends when its place is needed.
extension ServerConnection {
    func bindTicket() {
        let bound = LoopBound(self, on: loop)
        ticket?.onEnd { reason in bound.value.end(reason) }
    }

    private func end(_ reason: AdmissionTable.Reason) {
        log.debug("connection.ended", [.remote: remote, .reason: reason.rawValue])
        switch reason {
        // Begun requests are still answered.
        case .request, .lifetime: beginDrain()
        default: abort()
        }
    }

    /// The first byte of the handshake has come.
    func transportHasFirstByte() {
        clock.queuedHandshake(loop.now)
        server.queueHandshake(self)
    }

    /// Its turn among the handshakes of the loop has come. Takes one from its source's budget if it is still open.
    func takeHandshake() -> HandshakeDecision {
        guard link.isOpen else { return .drop }
        return ticket?.takeHandshake() ?? .begin
    }

    func beginHandshake() {
        clock.beganHandshake(loop.now)
        link.beginHandshake()
    }
}
