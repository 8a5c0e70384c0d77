import World

/// The retry schedule of a webhook: the first attempt at once, then a pause after each failure,
/// until the last attempt.
///
/// The schedule is a pure value. Two rules keep it predictable. A pause is never shorter than
/// planned, so the schedule lasts at least as long as documented. Random jitter adds up to a
/// quarter, so that webhooks that failed together do not return together. After the last attempt
/// the outbox entry becomes a dead letter. An attempt that never left the relay does not count; it
/// is repeated after `soon`.
///
/// Tests: `RetryScheduleTests`.
public struct RetrySchedule: Sendable, Equatable {
    /// The pause before each attempt, the first included.
    public let pauses: [Duration]

    /// The standard schedule: eight attempts over more than 27 hours. If a website is down for a
    /// day, its webhooks still arrive without an operator.
    public static let standard = RetrySchedule(
        pauses: [
            .zero, .seconds(5), .seconds(300), .seconds(1800), .seconds(2 * 3600), .seconds(5 * 3600),
            .seconds(10 * 3600), .seconds(10 * 3600),
        ])

    /// The pause after an attempt that never left the relay.
    public static let soon = Duration.seconds(1)

    public init(pauses: [Duration]) { self.pauses = pauses }

    /// The longest pause that a website can request with Retry-After.
    public var longestWish: Duration { pauses.max() ?? .zero }

    /// Returns the time of the next attempt; nil after the last one.
    ///
    /// - Parameter failures: the number of failed attempts, including the current one.
    /// - Parameter retryAfter: the website's Retry-After. It can only lengthen the pause: a website
    ///   that always asks for one second would soon use up all attempts.
    /// - Parameter chance: a random number in 0..<1, which lengthens the pause by this fraction of
    ///   a quarter.
    public func next(failures: Int, retryAfter: Duration? = nil, at now: Timestamp, jitter: Double) -> Timestamp? {
        guard failures < pauses.count else { return nil }
        let pause = max(pauses[max(failures, 0)], min(retryAfter ?? .zero, longestWish))
        return now + Self.spread(pause, jitter)
    }

    static func spread(_ pause: Duration, _ jitter: Double) -> Duration { pause * (1 + min(max(jitter, 0), 1) / 4) }
}
