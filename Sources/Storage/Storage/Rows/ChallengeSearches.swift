import Domain
import Relay
import World

/// The searches for challenges.
extension SignedRows {
    static func challenge(_ id: ChallengeID) -> SignedRows { challengeByID(challenge: .id(id)) }

    private static let challengeByID = RowSearch(.challenge, where: "{id = :challenge}")

    static func challenge(of entry: OutboxEntryID) -> SignedRows { challengeOfEntry(entry: .id(entry)) }

    private static let challengeOfEntry = RowSearch(
        .challenge, where: "id = (SELECT o.challenge_id FROM outbox o WHERE o.id = :entry)")

    static func challenges(leased lease: OperationID) -> SignedRows { challengesOfLease(lease: .id(lease)) }

    private static let challengesOfLease = RowSearch(
        .challenge, where: "id IN (SELECT o.challenge_id FROM outbox o WHERE o.lease = :lease)")

    /// The challenges that are open or were decided at that moment. The search finds the same
    /// challenges before and after a change that ends them.
    static func endedChallenges(of user: UserID, at now: Timestamp) -> SignedRows {
        endedChallengesOfUser(user: .id(user), now: .timestamp(now))
    }

    private static let endedChallengesOfUser = RowSearch(
        .challenge, where: "user_id = :user AND (decided_at IS NULL OR decided_at = :now)")

    /// The challenges with which the user approves a change, used or not.
    static func approvals(of user: UserID) -> SignedRows { approvalsOfUser(user: .id(user)) }

    private static let approvalsOfUser = RowSearch(.challenge, where: "user_id = :user AND approves IS NOT NULL")
}

// MARK: Outbox entries

extension SignedRows {
    static func entry<Thing>(_ id: Identifier<Thing>) -> SignedRows { entryByID(entry: .id(id)) }

    private static let entryByID = RowSearch(.outbox, where: "id = :entry")

    static func entries(for challenge: ChallengeID) -> SignedRows { entriesOfChallenge(challenge: .id(challenge)) }

    private static let entriesOfChallenge = RowSearch(.outbox, where: "challenge_id = :challenge")

    static func entries(leased lease: OperationID) -> SignedRows { entriesOfLease(lease: .id(lease)) }

    private static let entriesOfLease = RowSearch(.outbox, where: "lease = :lease")

    /// The `login.decided` entry of a challenge that this change ended. The search finds nothing
    /// before the change.
    static func decided(_ challenge: ChallengeID, by operation: Operation) -> SignedRows {
        decidedByChallenge(challenge: .id(challenge), operation: .id(operation))
    }

    private static let decidedByChallenge = RowSearch(
        .outbox, where: "id = (SELECT c.id FROM challenge c WHERE c.id = :challenge AND c.operation = :operation)")

    /// The `login.decided` entries of the user's challenges that this change ended at that moment.
    static func decided(of user: UserID, at now: Timestamp, by operation: Operation) -> SignedRows {
        decidedOfUser(user: .id(user), now: .timestamp(now), operation: .id(operation))
    }

    private static let decidedOfUser = RowSearch(
        .outbox,
        where: """
            id IN (SELECT c.id FROM challenge c
            WHERE c.user_id = :user AND c.decided_at = :now AND c.operation = :operation)
            """)
}
