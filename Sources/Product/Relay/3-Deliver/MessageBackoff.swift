import World

/// The back-off of messages: the time of the next attempt after a failure.
enum MessageBackoff {
    /// The pauses for a code. They are short because a user waits for it.
    static let code: [Duration] = [2, 5, 15, 30, 60].map { .seconds($0) }
    static let announcement: [Duration] = [1, 5, 15, 30, 60].map { .seconds($0 * 60) }
    /// The longest delay until the next outbox round leases a rescheduled message.
    static let round = Duration.seconds(2)
    /// The time of the last attempt before a deadline. The relay makes a last attempt this long
    /// before the next factor begins, and before the code expires.
    static let margin = Duration.seconds(5)

    /// The time of the next attempt; nil if no time is left for one.
    ///
    /// - Parameters:
    ///   - attempts: how often the message was rescheduled before.
    ///   - deadline: when the next factor begins automatically.
    ///   - chance: a random number from 0 up to 1. It spreads messages that were rescheduled
    ///     together.
    static func next(
        _ pauses: [Duration], attempts: Int, at now: Timestamp, deadline: Timestamp?, expiresAt: Timestamp,
        jitter: Double
    ) -> Timestamp? {
        let due = now + pauses[min(max(attempts, 0), pauses.count - 1)] * (0.75 + jitter / 2)
        let soon = now + .seconds(1)
        let last = expiresAt - margin
        if let deadline, due > deadline - margin, soon < deadline - margin { return min(deadline - margin, last) }
        guard due > last else { return due }
        return soon < last ? last : nil
    }

    /// The time of the next attempt if the gateway or mail server named a pause; nil if the message
    /// expires before. The relay never tries earlier than requested.
    static func next(
        wish: Duration, at now: Timestamp, expiresAt: Timestamp, jitter: Double
    ) -> Timestamp? {
        let wish = max(wish, .seconds(1))
        guard now + wish + round <= expiresAt else { return nil }
        return min(now + wish * (1 + jitter / 4), expiresAt - round)
    }
}
