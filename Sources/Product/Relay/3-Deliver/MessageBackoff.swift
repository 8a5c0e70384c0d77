import World

/// When a message is tried again that could not be handed over.
enum MessageBackoff {
    /// Of a code, for which somebody is waiting.
    static let code: [Duration] = [2, 5, 15, 30, 60].map { .seconds($0) }
    static let announcement: [Duration] = [1, 5, 15, 30, 60].map { .seconds($0 * 60) }
    /// What is put back is taken up by the next round, which may be a little late.
    static let round = Duration.seconds(2)
    /// So long before the next factor begins, and before a code counts no more, it is tried a last time.
    static let margin = Duration.seconds(5)

    /// Nil where there is no time for another try.
    ///
    /// - Parameters:
    ///   - attempts: how often it has been put back.
    ///   - deadline: when the next factor begins by itself.
    ///   - chance: from 0 up to 1, so that those who were put back together do not come back together.
    static func next(
        _ pauses: [Duration], attempts: Int, at now: Timestamp, deadline: Timestamp?, expiresAt: Timestamp,
        chance: Double
    ) -> Timestamp? {
        let due = now + pauses[min(max(attempts, 0), pauses.count - 1)] * (0.75 + chance / 2)
        let soon = now + .seconds(1)
        let last = expiresAt - margin
        if let deadline, due > deadline - margin, soon < deadline - margin { return min(deadline - margin, last) }
        guard due > last else { return due }
        return soon < last ? last : nil
    }

    /// Where the other side has said when: it is not asked again before that.
    static func next(
        wish: Duration, at now: Timestamp, expiresAt: Timestamp, chance: Double
    ) -> Timestamp? {
        let wish = max(wish, .seconds(1))
        guard now + wish + round <= expiresAt else { return nil }
        return min(now + wish * (1 + chance / 4), expiresAt - round)
    }
}
