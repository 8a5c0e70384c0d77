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
        BoundStatement(toldOne, values: times(now) + [.id(challenge), .id(operation)])
    }

    /// Writes the entries of the user's challenges that this change ended at that moment.
    static func insertLoginDecided(of user: UserID, at now: Timestamp, as operation: Operation) -> BoundStatement {
        BoundStatement(toldOfUser, values: times(now) + [.id(user), .timestamp(now), .id(operation)])
    }

    /// The entry that `insertLoginDecided` writes for this challenge.
    static func row(_ challenge: ChallengeID, as operation: Operation) -> SignedRows {
        .decided(challenge, by: operation).lenient
    }

    /// The entries that `insertLoginDecided` writes for the user's challenges.
    static func rows(of user: UserID, at now: Timestamp, as operation: Operation) -> SignedRows {
        .decided(of: user, at: now, by: operation).lenient
    }

    private static func times(_ now: Timestamp) -> [SQLValue] {
        [.timestamp(now), .timestamp(now + WebhookRows.life), .timestamp(now)]
    }
}

private let told = """
    INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, challenge_id, created_at, expires_at, webhook_due_at, attempts)
    SELECT c.id, '\(WebhookRows.kind)', 'login.decided', 0, c.user_id, c.website_id, c.id, ?, ?, ?, 0
    FROM challenge c JOIN website w ON w.id = c.website_id WHERE w.webhook_url IS NOT NULL AND
    """

private let toldOne = Statement(
    into: .outbox, once: true, told + " c.id = ? AND c.operation = ? AND c.decided_at IS NOT NULL")

private let toldOfUser = Statement(
    into: .outbox, once: true, told + " c.user_id = ? AND c.decided_at = ? AND c.operation = ?")
