import Domain
import World

/// The store operations for codes that websites submit.
public protocol CodeStore: Sendable {
    /// The factors and codes that a code for this challenge can match.
    ///
    /// - Parameters:
    ///   - recovery: the digest of the typed text, if it can be a recovery code.
    ///   - isTemporary: whether the typed text can be a temporary code.
    func codes(
        for challenge: ChallengeID, of user: UserID, recovery: [UInt8]?, isTemporary: Bool, at: Timestamp,
        as operation: OperationID
    ) async throws(StoreFailure) -> OpenCodes
}

public struct OpenCodes: Sendable, Equatable {
    /// The user's active code factors.
    public let factors: [CodeFactor]
    /// The counters of the codes that were sent for the challenge and are still valid, for each
    /// factor.
    public let sent: [FactorID: [Int64]]
    public let isRecoveryCode: Bool
    /// The user's temporary code, if the typed text can be one.
    public let temporary: OpenTemporaryCode?
    public let lockout: CodeLockout
    /// Whether this operation has already counted a wrong code.
    public let isCounted: Bool
    /// Whether the user's expiry has passed.
    public let hasUserExpired: Bool

    public init(
        factors: [CodeFactor], sent: [FactorID: [Int64]], isRecoveryCode: Bool, temporary: OpenTemporaryCode?,
        lockout: CodeLockout, isCounted: Bool, hasUserExpired: Bool
    ) {
        self.temporary = temporary
        self.hasUserExpired = hasUserExpired
        self.factors = factors
        self.sent = sent
        self.isRecoveryCode = isRecoveryCode
        self.lockout = lockout
        self.isCounted = isCounted
    }
}

/// A right code. It is used up in the script that ends its challenge.
public struct UsedCode: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        /// A TOTP or HOTP code: the counter as it was read, and its new value.
        case own(counter: Int64, becomes: Int64)
        /// A code that was sent by SMS or mail.
        case sent(counter: Int64)
        case recovery(digest: [UInt8])
        /// A temporary code of the help desk, as it was read.
        ///
        /// - `enrolling`: the digest of the one change that a code may approve which may enrol.
        case temporary(OpenTemporaryCode, enrolling: [UInt8])
    }

    public let user: UserID
    public let factor: FactorID
    /// The user's consecutive wrong codes, as they were read.
    public let failures: Int
    public let kind: Kind

    public init(user: UserID, factor: FactorID, failures: Int, kind: Kind) {
        self.user = user
        self.factor = factor
        self.failures = failures
        self.kind = kind
    }
}
