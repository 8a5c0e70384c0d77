import Domain
import Relay

/// The searches for recoveries.
extension SignedRows {
    static func recovery(_ id: RecoveryID) -> SignedRows { recoveryByID(recovery: .id(id)) }

    private static let recoveryByID = RowSearch(.recovery, where: "id = :recovery")

    static func recoveries(of user: UserID) -> SignedRows { recoveriesOfUser(user: .id(user)) }

    private static let recoveriesOfUser = RowSearch(.recovery, where: "user_id = :user")

    static func recovery(_ token: RecoveryToken) -> SignedRows {
        switch token {
        case .link(let digest): recoveryByLink(digest: .blob(digest))
        case .handle(let digest): recoveryByHandle(digest: .blob(digest))
        case .cancel(let digest): recoveryByCancel(digest: .blob(digest))
        }
    }

    private static let recoveryByLink = RowSearch(.recovery, where: "link = :digest")
    private static let recoveryByHandle = RowSearch(.recovery, where: "handle = :digest")
    private static let recoveryByCancel = RowSearch(.recovery, where: "cancel = :digest")

    static func user(recovering token: RecoveryToken) -> SignedRows {
        switch token {
        case .link(let digest): userByLink(digest: .blob(digest))
        case .handle(let digest): userByHandle(digest: .blob(digest))
        case .cancel(let digest): userByCancel(digest: .blob(digest))
        }
    }

    private static let userByLink = RowSearch(.user, where: "id = (SELECT user_id FROM recovery WHERE link = :digest)")
    private static let userByHandle = RowSearch(
        .user, where: "id = (SELECT user_id FROM recovery WHERE handle = :digest)")
    private static let userByCancel = RowSearch(
        .user, where: "id IN (SELECT user_id FROM recovery WHERE cancel = :digest)")

    /// The recovery about which this challenge asks the phones.
    static func recovery(asked challenge: ChallengeID) -> SignedRows { recoveryByChallenge(challenge: .id(challenge)) }

    private static let recoveryByChallenge = RowSearch(.recovery, where: "challenge_id = :challenge")

    static func recovery(of entry: OutboxEntryID) -> SignedRows { recoveryOfEntry(entry: .id(entry)) }

    private static let recoveryOfEntry = RowSearch(
        .recovery, where: "challenge_id = (SELECT o.challenge_id FROM outbox o WHERE o.id = :entry)")

    /// The recovery about which a mail is.
    static func recovery(mailedBy entry: OutboxEntryID) -> SignedRows { recoveryOfMail(entry: .id(entry)) }

    private static let recoveryOfMail = RowSearch(
        .recovery, where: "id = (SELECT o.recovery_id FROM outbox o WHERE o.id = :entry)")

    /// The recovery to which a factor belongs.
    static func recovery(of factor: FactorID) -> SignedRows { recoveryOfFactor(factor: .id(factor)) }

    private static let recoveryOfFactor = RowSearch(
        .recovery, where: "id = (SELECT f.approval FROM factor f WHERE f.id = :factor)")

    /// The recoveries of a user's lost phones that can still be finished, or were finished by this
    /// change.
    static func recoveriesOfPhones(of user: UserID) -> SignedRows { recoveriesOfLostPhones(user: .id(user)) }

    private static let recoveriesOfLostPhones = RowSearch(
        .recovery, where: "user_id = :user AND factor = 'push' AND state IN ('proved', 'done')")
}
