import World

/// Whether a gateway is worth asking. One that fails again and again is left alone for a while, which grows; then one message
/// tries it.
struct CircuitBreaker: Sendable, Equatable {
    enum State: Sendable, Equatable {
        /// So many failures in a row.
        case closed(failures: Int)
        case open(until: Instant, pause: Duration)
        /// One message is on its way to find out.
        case trying(since: Instant, pause: Duration)
    }

    static let failures = 3
    static let shortest = Duration.seconds(5)
    static let longest = Duration.seconds(300)
    /// Whoever tries and never tells what came of it is not waited for.
    static let trial = Duration.seconds(60)

    private(set) var state = State.closed(failures: 0)

    /// Whether a message may go there now. Where that is a trial, what comes of it has to be told.
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

    /// How long nothing may go there; nil where something may.
    func wait(at now: Instant) -> Duration? {
        switch state {
        case .closed: nil
        case .open(let until, _): now < until ? until - now : nil
        // What becomes of the trial is known in a moment: nobody is to give up before.
        case .trying(let since, _): now - since < Self.trial ? Self.shortest : nil
        }
    }

    var isOpen: Bool { if case .closed = state { false } else { true } }

    /// Whoever was let through did not go there after all.
    mutating func abandon(at now: Instant) {
        if case .trying(_, let pause) = state { state = .open(until: now, pause: pause) }
    }

    mutating func succeed() { state = .closed(failures: 0) }

    /// `forCertain`: the next message would fail for the same reason. `asked`: for how long it wants to be left alone.
    mutating func fail(forCertain: Bool = false, asked: Duration? = nil, at now: Instant) {
        let pause: Duration
        switch state {
        case .closed(let failures):
            guard forCertain || asked != nil || failures + 1 >= Self.failures else {
                state = .closed(failures: failures + 1)
                return
            }
            pause = Self.shortest
        // Of a message that was on its way when it was closed.
        case .open: return
        case .trying(_, let before): pause = min(before * 2, Self.longest)
        }
        state = .open(until: now + max(pause, min(asked ?? .zero, Self.longest)), pause: pause)
    }
}
