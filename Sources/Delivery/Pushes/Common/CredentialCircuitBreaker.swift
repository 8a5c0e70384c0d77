import World

/// A circuit breaker for a credential that Apple refused. While it is open, no push is sent, since
/// every push would be refused alike. After a pause one push is sent as a trial.
struct CredentialCircuitBreaker {
    static let pause = Duration.seconds(30)

    enum Entry: Equatable {
        case free
        /// This push is the trial; the others are still refused.
        case trial
        case refused(reason: String)
    }

    private enum State {
        case closed
        case open(since: Instant, reason: String)
    }

    private var state = State.closed

    /// The reason why it is open; nil while it is closed.
    var reason: String? {
        if case .open(_, let reason) = state { reason } else { nil }
    }

    mutating func enter(at now: Instant) -> Entry {
        guard case .open(let since, let reason) = state else { return .free }
        guard now - since >= Self.pause else { return .refused(reason: reason) }
        // The pause starts again here, so that a trial without an answer is followed by another
        // one.
        state = .open(since: now, reason: reason)
        return .trial
    }

    /// Opens the circuit. Returns false if it was open already.
    mutating func distrust(_ reason: String, at now: Instant) -> Bool {
        defer { state = .open(since: now, reason: reason) }
        if case .open = state { return false }
        return true
    }
}
