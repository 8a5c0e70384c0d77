import World

/// The budget of wrong codes that all code factors of a user share, and the lock that follows when it is used up.
///
/// Each wrong code counts once, however many factors it could have been of. A right code clears
/// only the wrong codes that were guesses at its own factor alone. Removing or replacing a factor
/// clears nothing. At the limit all codes are refused, and signed approvals go on: who knows the
/// password cannot take the phone away from its owner.
public struct CodeLockout: Equatable, Sendable {
    /// Wrong codes in a row.
    public let failures: Int
    public let failedAt: Timestamp?
    /// The time since which no code is taken; nil while codes are taken.
    public let lockedAt: Timestamp?

    public init(failures: Int, failedAt: Timestamp?, lockedAt: Timestamp?) {
        self.failures = failures
        self.failedAt = failedAt
        self.lockedAt = lockedAt
    }

    public static let none = CodeLockout(failures: 0, failedAt: nil, lockedAt: nil)

    public var isLocked: Bool { lockedAt != nil }

    /// The time for which no code of the user is checked; nil if one may be.
    public func pause(at now: Timestamp) -> Duration? {
        FailureDelay.wait(after: failures, lastAt: failedAt, at: now)
    }

    /// The state after one more wrong code.
    ///
    /// - Parameter limit: the number of wrong codes that locks.
    public func afterWrongCode(limit: Int, at now: Timestamp) -> CodeLockout {
        // The store may hold any number, whoever wrote it there.
        let failures = min(failures, Int.max - 1) + 1
        return CodeLockout(failures: failures, failedAt: now, lockedAt: lockedAt ?? (failures >= limit ? now : nil))
    }
}
