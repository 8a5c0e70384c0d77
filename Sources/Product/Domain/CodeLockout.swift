import World

/// The budget of wrong codes that all code factors of a user share, and the lock after it is used
/// up.
///
/// Each wrong code counts once, however many factors it could belong to. A right code clears only
/// the wrong codes that were guesses at its own factor alone. Removing or replacing a factor clears
/// nothing. At the limit all codes are refused, but signed approvals continue. An attacker who
/// knows the password therefore cannot lock out the user's phone.
public struct CodeLockout: Equatable, Sendable {
    /// The number of consecutive wrong codes.
    public let failures: Int
    public let failedAt: Timestamp?
    /// The time since which no code is accepted; nil while codes are accepted.
    public let lockedAt: Timestamp?

    public init(failures: Int, failedAt: Timestamp?, lockedAt: Timestamp?) {
        self.failures = failures
        self.failedAt = failedAt
        self.lockedAt = lockedAt
    }

    public static let none = CodeLockout(failures: 0, failedAt: nil, lockedAt: nil)

    public var isLocked: Bool { lockedAt != nil }

    /// Returns the time for which no code of the user is checked; nil if codes are checked now.
    public func pause(at now: Timestamp) -> Duration? {
        FailureDelay.wait(after: failures, lastAt: failedAt, at: now)
    }

    /// The state after one more wrong code.
    ///
    /// - Parameter limit: the number of wrong codes that locks.
    public func afterWrongCode(limit: Int, at now: Timestamp) -> CodeLockout {
        // The store may hold any number.
        let failures = min(failures, Int.max - 1) + 1
        return CodeLockout(failures: failures, failedAt: now, lockedAt: lockedAt ?? (failures >= limit ? now : nil))
    }
}
