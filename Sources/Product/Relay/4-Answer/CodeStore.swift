import Domain
import World

/// Codes that websites hand in.
public protocol CodeStore: Sendable {
    /// What a code for that challenge could be.
    ///
    /// - Parameter recovery: the digest of what was typed, where it can be a recovery code.
    func codes(
        for challenge: ChallengeID, of user: UserID, recovery: [UInt8]?, at: Timestamp, as operation: OperationID
    )
        async throws(StoreFailure) -> OpenCodes
}

public struct OpenCodes: Sendable, Equatable {
    /// The user's active ones.
    public let factors: [CodeFactor]
    /// Of each factor, the codes that were sent for the challenge and count still.
    public let sent: [FactorID: [Int64]]
    public let isRecoveryCode: Bool
    public let lockout: CodeLockout
    /// This operation has counted a wrong code.
    public let isCounted: Bool

    public init(
        factors: [CodeFactor], sent: [FactorID: [Int64]], isRecoveryCode: Bool, lockout: CodeLockout, isCounted: Bool
    ) {
        self.factors = factors
        self.sent = sent
        self.isRecoveryCode = isRecoveryCode
        self.lockout = lockout
        self.isCounted = isCounted
    }
}

/// A right code, which is used up with the end that it gives its challenge.
public struct UsedCode: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        /// totp, hotp: the counter as it was read, and what becomes of it.
        case own(counter: Int64, becomes: Int64)
        /// sms, mail.
        case sent(counter: Int64)
        case recovery(digest: [UInt8])
    }

    public let user: UserID
    public let factor: FactorID
    /// Wrong codes of the user in a row, as they were read.
    public let failures: Int
    public let kind: Kind

    public init(user: UserID, factor: FactorID, failures: Int, kind: Kind) {
        self.user = user
        self.factor = factor
        self.failures = failures
        self.kind = kind
    }
}
