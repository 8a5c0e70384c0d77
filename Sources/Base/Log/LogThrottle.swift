import World

/// Limits repeated log lines: a repeated event is logged at most once in ten seconds, with the
/// number of events since the last line. So a flood of events cannot flood the log.
public struct LogThrottle: Sendable {
    private var saidAt: Instant?
    private var unreported = 0

    public init() {}

    /// Returns the number of events since the last line, including these, or nil if that line is
    /// less than ten seconds old.
    public mutating func record(_ events: Int = 1, at now: Instant) -> Int? {
        unreported += events
        if let saidAt, now < saidAt + .seconds(10) { return nil }
        defer { unreported = 0 }
        saidAt = now
        return unreported
    }
}
