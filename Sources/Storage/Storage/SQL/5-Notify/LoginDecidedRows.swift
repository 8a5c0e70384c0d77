import Domain
import World

/// The end of a login, as its website is told of it by itself: a row of the outbox, written with the end. To be put behind
/// whatever drops the errands of that challenge. A challenge ends once, so its own id is the row's, whatever ended it.
enum LoginDecidedRows {
    /// Of this challenge, if this very change has ended it. Websites without a callback get no row.
    static func insertLoginDecided(_ challenge: ChallengeID, at now: Timestamp, as operation: Operation)
        -> BoundStatement
    {
        BoundStatement(toldOne, values: times(now) + [.id(challenge), .id(operation)])
    }

    /// Of the challenges of a user that this very change ended at that moment.
    static func insertLoginDecided(of user: UserID, at now: Timestamp, as operation: Operation) -> BoundStatement {
        BoundStatement(toldOfUser, values: times(now) + [.id(user), .timestamp(now), .id(operation)])
    }

    /// The row that `insertLoginDecided` writes of this challenge.
    static func row(_ challenge: ChallengeID, as operation: Operation) -> SignedRows {
        .decided(challenge, by: operation).lenient
    }

    /// The rows that `insertLoginDecided` writes of the challenges of a user.
    static func rows(of user: UserID, at now: Timestamp, as operation: Operation) -> SignedRows {
        .decided(of: user, at: now, by: operation).lenient
    }

    private static func times(_ now: Timestamp) -> [SQLValue] {
        [.timestamp(now), .timestamp(now + WebhookRows.life), .timestamp(now)]
    }
}

private let told = """
    INSERT INTO outbox (id, kind, event, place, user_id, website_id, challenge_id, created_at, expires_at, call_at, attempts)
    SELECT c.id, '\(WebhookRows.kind)', 'login.decided', 0, c.user_id, c.website_id, c.id, ?, ?, ?, 0
    FROM challenge c JOIN website w ON w.id = c.website_id WHERE w.callback IS NOT NULL AND
    """

private let toldOne = Statement(
    into: .outbox, once: true, told + " c.id = ? AND c.operation = ? AND c.decided_at IS NOT NULL")

private let toldOfUser = Statement(
    into: .outbox, once: true, told + " c.user_id = ? AND c.decided_at = ? AND c.operation = ?")
