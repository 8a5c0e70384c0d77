import World

/// When a connection has kept us waiting for too long. Knows no timer: it is asked, and says when to ask again.
struct ConnectionClock {
    enum Overdue: Equatable {
        case handshake
        /// No request, or a part of one, and then nothing.
        case request
        case settings
        /// The peer does not take what it asked for.
        case write
        case idle
    }

    enum Verdict: Equatable {
        case fine(askAgain: Instant)
        case overdue(Overdue)
    }

    private let limits: ServerLimits
    private var handshakeBy: Instant?
    /// Since when the handshake has waited for its turn.
    private var handshakeQueued: Instant?
    private var settingsBy: Instant?
    private var lastActivity: Instant
    /// Since when there has been something to send, and how much had been sent then.
    private var writing: (since: Instant, sent: UInt64)?

    init(limits: ServerLimits, now: Instant) {
        self.limits = limits
        handshakeBy = now + limits.handshake
        lastActivity = now
    }

    /// The client has begun, and waits for its turn from now on: at most until its handshake would be overdue.
    mutating func queuedHandshake(_ now: Instant) { handshakeQueued = now }

    /// Its turn has come. The wait was not the client's: it has as much time left as it had before.
    mutating func beganHandshake(_ now: Instant) {
        guard let by = handshakeBy, let since = handshakeQueued else { return }
        handshakeBy = by + (now - since)
        handshakeQueued = nil
    }

    mutating func handshakeEnded(_ now: Instant) {
        handshakeBy = nil
        settingsBy = now + limits.settingsAcknowledgement
        lastActivity = now
    }

    mutating func settingsAcknowledged() { settingsBy = nil }

    mutating func active(_ now: Instant) { lastActivity = now }

    /// To be told when something is left to send after a flush; `nil` for `sent` when nothing is.
    /// True if this is new, and so may be due before anybody would ask.
    mutating func pending(sent: UInt64?, now: Instant) -> Bool {
        guard let sent else {
            writing = nil
            return false
        }
        guard writing == nil else { return false }
        writing = (now, sent)
        return true
    }

    /// `oldestRequest`: since when the oldest request that is not whole has been coming in. `isIdle`: no stream stands.
    mutating func verdict(_ now: Instant, sent: UInt64, oldestRequest: Instant?, isIdle: Bool) -> Verdict {
        if let handshakeBy {
            return now >= handshakeBy ? .overdue(.handshake) : .fine(askAgain: handshakeBy)
        }
        var next = now + limits.idle
        func wait(until moment: Instant) { next = min(next, moment) }
        if let settingsBy {
            if now >= settingsBy { return .overdue(.settings) }
            wait(until: settingsBy)
        }
        if let oldestRequest {
            if now >= oldestRequest + limits.request { return .overdue(.request) }
            wait(until: oldestRequest + limits.request)
        }
        if let writing {
            if now >= writing.since + limits.write {
                // A byte a second is as good as none.
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
