/// The current stream limit of one connection, as `StreamLimits` prescribes. It is a pure state
/// machine.
struct StreamLimitSchedule {
    private let limits: StreamLimits
    private var isProved: Bool
    private var requests = 0
    /// The number of phases that have ended, over all rounds.
    private(set) var step = 0

    init(_ limits: StreamLimits) {
        self.limits = limits
        isProved = limits.unproved == nil
    }

    private var current: StreamLimits.Phase? {
        limits.steps.isEmpty ? nil : limits.steps[step % limits.steps.count]
    }

    /// The limit to announce. The outer nil means that SETTINGS does not mention a limit; the inner
    /// nil means that there is no limit.
    var limit: UInt32?? {
        guard isProved else { return limits.unproved }
        return current.map(\.limit)
    }

    /// The longest duration of the current phase; nil if time does not end it.
    var duration: Duration? { isProved ? current?.duration : nil }

    /// Records that the provider proved its identity. Like `count` and `advance`, it returns true
    /// if a new limit must be announced.
    mutating func prove() -> Bool {
        guard !isProved else { return false }
        isProved = true
        return current != nil
    }

    /// Counts a request.
    mutating func count() -> Bool {
        guard isProved, let needed = current?.requests else { return false }
        requests += 1
        return requests >= needed && advance()
    }

    /// Starts the next phase.
    mutating func advance() -> Bool {
        guard isProved, !limits.steps.isEmpty else { return false }
        step += 1
        requests = 0
        return true
    }
}
