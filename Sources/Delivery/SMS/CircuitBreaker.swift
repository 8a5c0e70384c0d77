import World

/// A circuit breaker for one gateway. After repeated failures it opens for a pause that doubles up
/// to five minutes; then one message is a trial. Success of the trial closes it.
struct CircuitBreaker: Sendable, Equatable {
    enum State: Sendable, Equatable {
        /// The gateway is in use; the value is the number of consecutive failures.
        case closed(failures: Int)
        case open(until: Instant, pause: Duration)
        /// A single message is under way as a trial.
        case trying(since: Instant, pause: Duration)
    }

    static let failures = 3
    static let shortest = Duration.seconds(5)
    static let longest = Duration.seconds(300)
    /// The time after which a trial without a result is abandoned and another one admitted.
    static let trial = Duration.seconds(60)

    private(set) var state = State.closed(failures: 0)

    /// Returns whether a message may be sent now. If it is a trial, its result must be reported.
    mutating func admit(at now: Instant) -> Bool {
        switch state {
        case .closed: return true
        case .open(let until, let pause):
            guard now >= until else { return false }
            state = .trying(since: now, pause: pause)
            return true
        case .trying(let since, let pause):
            guard now - since >= Self.trial else { return false }
            state = .trying(since: now, pause: pause)
            return true
        }
    }

    /// Returns how long nothing may be sent; nil if a message may be sent now.
    func wait(at now: Instant) -> Duration? {
        switch state {
        case .closed: nil
        case .open(let until, _): now < until ? until - now : nil
        // The result of the trial is known soon; callers should retry rather than give up.
        case .trying(let since, _): now - since < Self.trial ? Self.shortest : nil
        }
    }

    var isOpen: Bool { if case .closed = state { false } else { true } }

    /// Records that an admitted message was not sent.
    mutating func abandon(at now: Instant) {
        if case .trying(_, let pause) = state { state = .open(until: now, pause: pause) }
    }

    mutating func succeed() { state = .closed(failures: 0) }

    /// Records a failure.
    ///
    /// - Parameter forCertain: whether the next message would fail for the same reason.
    /// - Parameter asked: the pause that the gateway asked for.
    mutating func fail(forCertain: Bool = false, asked: Duration? = nil, at now: Instant) {
        let pause: Duration
        switch state {
        case .closed(let failures):
            guard forCertain || asked != nil || failures + 1 >= Self.failures else {
                state = .closed(failures: failures + 1)
                return
            }
            pause = Self.shortest
        // The failure of a message that was sent before the circuit opened.
        case .open: return
        case .trying(_, let before): pause = min(before * 2, Self.longest)
        }
        state = .open(until: now + max(pause, min(asked ?? .zero, Self.longest)), pause: pause)
    }
}
