import Domain
import Relay
import World

/// The searches for phones.
extension SignedRows {
    static func device(_ id: DeviceID) -> SignedRows { deviceByID(device: .id(id)) }

    private static let deviceByID = RowSearch(.device, where: "{id = :device}")

    static func devices(of user: UserID) -> SignedRows { devicesOfUser(user: .id(user)) }

    private static let devicesOfUser = RowSearch(.device, where: "user_id = :user")

    static func device(of entry: OutboxEntryID) -> SignedRows { deviceOfEntry(entry: .id(entry)) }

    private static let deviceOfEntry = RowSearch(
        .device, where: "id = (SELECT o.device_id FROM outbox o WHERE o.id = :entry)")

    /// The phone that a push went to. The search finds it before and after the change that deletes
    /// the push's outbox entry.
    static func device(pushedTo entry: OutboxEntryID, settledBy operation: Operation) -> SignedRows {
        deviceOfSettled(entry: .id(entry), operation: .id(operation))
    }

    private static let deviceOfSettled = RowSearch(
        .device,
        where: """
            id = coalesce((SELECT o.device_id FROM outbox o WHERE o.id = :entry),
            (SELECT a.device_id FROM audit a WHERE a.operation = :operation))
            """)

    static func devices(leased lease: OperationID) -> SignedRows { devicesOfLease(lease: .id(lease)) }

    private static let devicesOfLease = RowSearch(
        .device, where: "id IN (SELECT o.device_id FROM outbox o WHERE o.lease = :lease)")
}

// MARK: Code factors

extension SignedRows {
    static func factor(_ id: FactorID) -> SignedRows { factorByID(factor: .id(id)) }

    private static let factorByID = RowSearch(.factor, where: "id = :factor")

    static func factors(of user: UserID) -> SignedRows { factorsOfUser(user: .id(user)) }

    private static let factorsOfUser = RowSearch(.factor, where: "user_id = :user")

    static func activeFactors(of user: UserID) -> SignedRows { activeFactorsOfUser(user: .id(user)) }

    private static let activeFactorsOfUser = RowSearch(.factor, where: "user_id = :user AND state = 'active'")

    static func factors(_ kind: Factor, of user: UserID) -> SignedRows {
        factorsOfKind(user: .id(user), kind: .word(kind))
    }

    private static let factorsOfKind = RowSearch(.factor, where: "user_id = :user AND kind = :kind")

    static func factor(of entry: OutboxEntryID) -> SignedRows { factorOfEntry(entry: .id(entry)) }

    private static let factorOfEntry = RowSearch(
        .factor, where: "id = (SELECT o.factor_id FROM outbox o WHERE o.id = :entry)")

    /// The factor with the address to which an account event is sent.
    static func address(of entry: OutboxEntryID) -> SignedRows { addressOfEntry(entry: .id(entry)) }

    private static let addressOfEntry = RowSearch(
        .factor,
        where: """
            user_id = (SELECT o.user_id FROM outbox o WHERE o.id = :entry)
            AND kind = (SELECT o.kind FROM outbox o WHERE o.id = :entry) AND state = 'active'
            """)
}

// MARK: Codes

extension SignedRows {
    /// The codes that were sent to confirm an address of that kind.
    static func confirmingCodes(_ kind: Factor, of user: UserID) -> SignedRows {
        confirmingCodesOfKind(user: .id(user), kind: .word(kind))
    }

    private static let confirmingCodesOfKind = RowSearch(
        .sentCode,
        where: """
            challenge_id IS NULL
            AND factor_id IN (SELECT f.id FROM factor f WHERE f.user_id = :user AND f.kind = :kind)
            """)

    static func sentCode(of factor: FactorID, _ counter: Int64) -> SignedRows {
        sentCodeByKey(factor: .id(factor), counter: .integer(counter))
    }

    private static let sentCodeByKey = RowSearch(.sentCode, where: "factor_id = :factor AND counter = :counter")

    static func sentCodes(of factor: FactorID) -> SignedRows { sentCodesOfFactor(factor: .id(factor)) }

    private static let sentCodesOfFactor = RowSearch(.sentCode, where: "factor_id = :factor")

    /// The codes that were sent for a challenge and have not expired.
    static func sentCodes(for challenge: ChallengeID, at now: Timestamp) -> SignedRows {
        sentCodesOfChallenge(challenge: .id(challenge), now: .timestamp(now))
    }

    private static let sentCodesOfChallenge = RowSearch(
        .sentCode, where: "challenge_id = :challenge AND expires_at > :now")

    static func recoveryCode(_ digest: [UInt8], of user: UserID) -> SignedRows {
        recoveryCodeByKey(user: .id(user), digest: .blob(digest))
    }

    private static let recoveryCodeByKey = RowSearch(.recoveryCode, where: "user_id = :user AND digest = :digest")

    static func temporaryCode(of user: UserID) -> SignedRows { temporaryCodeOfUser(user: .id(user)) }

    private static let temporaryCodeOfUser = RowSearch(.temporaryCode, where: "user_id = :user")
}
