import World

/// The rules that decide when a peer has kept a connection waiting too long. It has no timer: the
/// owner asks for a verdict, which says when to ask again.
struct ConnectionClock {
    enum Overdue: Equatable {
        case handshake
        /// The request is incomplete, and its time is over.
        case request
        case settings
        /// The peer does not read the answers.
        case write
        case idle
    }

    enum Verdict: Equatable {
        case fine(askAgain: Instant)
        case overdue(Overdue)
    }

    /// The step that the client must still take. Once it is taken, only requests and silence count.
    private enum Setup {
        case handshake(by: Instant)
        case settings(by: Instant)
        case complete
    }

    private let limits: ServerLimits
    private var setup: Setup
    private var lastActivity: Instant
    /// When output began to wait for the peer, and the number of bytes sent until then; nil if no
    /// output waits.
    private var writing: (since: Instant, sent: UInt64)?

    init(limits: ServerLimits, now: Instant) {
        self.limits = limits
        setup = .handshake(by: now + limits.handshake)
        lastActivity = now
    }

    /// Records that the handshake has waited for its turn. The client did not cause the wait, so it
    /// has as much time left as before. The wait itself ends when the handshake would be overdue.
    mutating func handshakeWaited(_ duration: Duration) {
        guard case .handshake(let by) = setup else { return }
        setup = .handshake(by: by + duration)
    }

    mutating func handshakeEnded(_ now: Instant) {
        setup = .settings(by: now + limits.settingsAcknowledgement)
        lastActivity = now
    }

    mutating func settingsAcknowledged() { setup = .complete }

    mutating func active(_ now: Instant) { lastActivity = now }

    /// Records after a flush whether output is left.
    /// - Parameter sent: the number of bytes sent so far; nil if no output is left.
    /// - Returns: true if output has just begun to wait, so it may be overdue before the next
    ///   check.
    mutating func pending(sent: UInt64?, now: Instant) -> Bool {
        guard let sent else {
            writing = nil
            return false
        }
        guard writing == nil else { return false }
        writing = (now, sent)
        return true
    }

    /// Whether something is overdue, or when to ask again.
    /// - Parameter oldestRequest: when the oldest incomplete request began; nil if there is none.
    /// - Parameter isIdle: whether no stream is open.
    mutating func verdict(_ now: Instant, sent: UInt64, oldestRequest: Instant?, isIdle: Bool) -> Verdict {
        var next = now + limits.idle
        func wait(until moment: Instant) { next = min(next, moment) }
        switch setup {
        case .handshake(let by): return now >= by ? .overdue(.handshake) : .fine(askAgain: by)
        case .settings(let by):
            if now >= by { return .overdue(.settings) }
            wait(until: by)
        case .complete: break
        }
        if let oldestRequest {
            if now >= oldestRequest + limits.request { return .overdue(.request) }
            wait(until: oldestRequest + limits.request)
        }
        if let writing {
            if now >= writing.since + limits.write {
                // A byte per second counts as no progress.
                if sent - writing.sent < limits.writeProgress { return .overdue(.write) }
                self.writing = (now, sent)
                wait(until: now + limits.write)
            } else {
                wait(until: writing.since + limits.write)
            }
        }
        if isIdle {
            if now >= lastActivity + limits.idle { return .overdue(.idle) }
            wait(until: lastActivity + limits.idle)
        }
        return .fine(askAgain: next)
    }
}
