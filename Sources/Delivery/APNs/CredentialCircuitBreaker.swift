import World

/// Whether to go on with a credential that was refused. While it is open nothing is sent, since every push would be
/// refused alike; after a pause one push tries again.
struct CredentialCircuitBreaker {
    static let pause = Duration.seconds(30)

    enum Entry: Equatable {
        case free
        /// This push tries; the others are still refused.
        case trial
        case refused(reason: String)
    }

    private enum State {
        case closed
        case open(since: Instant, reason: String)
    }

    private var state = State.closed

    /// Why it is open.
    var reason: String? {
        if case .open(_, let reason) = state { reason } else { nil }
    }

    mutating func enter(at now: Instant) -> Entry {
        guard case .open(let since, let reason) = state else { return .free }
        guard now - since >= Self.pause else { return .refused(reason: reason) }
        // Counted from here on, so that a trial without an answer is followed by another one.
        state = .open(since: now, reason: reason)
        return .trial
    }

    /// Whether this opened it.
    mutating func distrust(_ reason: String, at now: Instant) -> Bool {
        defer { state = .open(since: now, reason: reason) }
        if case .open = state { return false }
        return true
    }
}
