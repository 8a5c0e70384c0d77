import Domain
import World

/// The webhook `login.decided`, which notifies a website of the end of a login. Its outbox entry is
/// written with the end. The statements must follow those that delete the challenge's other
/// entries. The entry has the challenge's id, because a challenge ends once.
enum LoginDecidedRows {
    /// Writes the entry of this challenge, if this change has ended it. Websites without a webhook
    /// endpoint get no entry.
    static func insertLoginDecided(_ challenge: ChallengeID, at now: Timestamp, as operation: Operation)
        -> BoundStatement
    {
        insertOfChallenge(
            now: .timestamp(now), expiresAt: .timestamp(now + WebhookRows.life), challenge: .id(challenge),
            operation: .id(operation))
    }

    private static let insertOfChallenge = Statement(
        into: .outbox, once: true,
        "\(insert) c.id = :challenge AND c.operation = :operation AND c.decided_at IS NOT NULL")

    /// Writes the entries of the user's challenges that this change ended at that moment.
    static func insertLoginDecided(of user: UserID, at now: Timestamp, as operation: Operation) -> BoundStatement {
        insertOfUser(
            now: .timestamp(now), expiresAt: .timestamp(now + WebhookRows.life), user: .id(user),
            operation: .id(operation))
    }

    private static let insertOfUser = Statement(
        into: .outbox, once: true,
        "\(insert) c.user_id = :user AND c.decided_at = :now AND c.operation = :operation")

    /// Inserts entries of challenges `c`. A condition must follow.
    private static let insert = """
        INSERT INTO outbox
        (id, kind, event, ordinal, user_id, website_id, challenge_id, created_at, expires_at, webhook_due_at, attempts)
        SELECT c.id, '\(WebhookRows.kind)', 'login.decided', 0, c.user_id, c.website_id, c.id, :now, :expiresAt, :now, 0
        FROM challenge c JOIN website w ON w.id = c.website_id WHERE w.webhook_url IS NOT NULL AND
        """

    /// The entry that `insertLoginDecided` writes for this challenge.
    static func row(_ challenge: ChallengeID, as operation: Operation) -> SignedRows {
        .decided(challenge, by: operation).lenient
    }

    /// The entries that `insertLoginDecided` writes for the user's challenges.
    static func rows(of user: UserID, at now: Timestamp, as operation: Operation) -> SignedRows {
        .decided(of: user, at: now, by: operation).lenient
    }
}
