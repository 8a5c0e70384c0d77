/// Where one connection is in the course of its stream limits.
struct StreamLimitSchedule {
    private let limits: StreamLimits
    private var isProved: Bool
    private var requests = 0
    /// Counts the steps that were taken, over all rounds.
    private(set) var step = 0

    init(_ limits: StreamLimits) {
        self.limits = limits
        isProved = limits.unproved == nil
    }

    private var current: StreamLimits.Phase? {
        limits.steps.isEmpty ? nil : limits.steps[step % limits.steps.count]
    }

    /// Nil: nothing is said of it. An empty one inside: that there is none.
    var limit: UInt32?? {
        guard isProved else { return limits.unproved }
        return current.map(\.limit)
    }

    /// How long the step lasts at most.
    var duration: Duration? { isProved ? current?.duration : nil }

    /// Each of these is true if there is another limit now.
    mutating func prove() -> Bool {
        guard !isProved else { return false }
        isProved = true
        return current != nil
    }

    mutating func count() -> Bool {
        guard isProved, let needed = current?.requests else { return false }
        requests += 1
        return requests >= needed && advance()
    }

    mutating func advance() -> Bool {
        guard isProved, !limits.steps.isEmpty else { return false }
        step += 1
        requests = 0
        return true
    }
}
