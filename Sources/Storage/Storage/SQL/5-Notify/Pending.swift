import Domain
import Relay
import World

extension Store: PendingStore {
    public func pending(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [Pending] {
        let script = Script(
            "pending", rows: [.openChallenges(of: user, at: now)],
            reads: [BoundStatement(openOfUser, .id(user), .timestamp(now), .timestamp(now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var pending: [Pending] = []
                for row in rows[0] {
                    pending.append(
                        Pending(
                            challenge: try row.id(0), nonce: try row.blob(1), context: try row.blob(2),
                            askedAt: try row.timestamp(4), expiresAt: try row.timestamp(3),
                            policy: try row.text(6), unseen: try row.optionalWord(5)))
                }
                return pending
            })
    }

    public func markSeen(_ challenge: ChallengeID, at now: Timestamp) async throws(StoreFailure) {
        let script = Script("see", writes: [BoundStatement(stepSeen, .timestamp(now), .id(challenge), .id(challenge))])
        try await run(Query(script: script) { _ in () })
    }
}

/// Reads the open challenges. While a login from a known browser is open, no login from another
/// browser is shown. The user therefore sees one request at a time.
private let openOfUser = Statement(
    """
    SELECT c.id, c.nonce, c.context, c.expires_at, c.asked_at, (SELECT s.factor FROM step s
    WHERE s.challenge_id = c.id AND s.state IN ('queued', 'sent') AND s.factor IN ('push', 'pull')
    ORDER BY s.ordinal LIMIT 1), c.policy
    FROM challenge c WHERE c.user_id = ? AND c.decided_at IS NULL AND c.expires_at > ?
    AND NOT EXISTS (SELECT 1 FROM challenge k
    WHERE k.user_id = c.user_id AND k.known > c.known AND k.decided_at IS NULL AND k.expires_at > ?) ORDER BY c.asked_at, c.id
    """)

private let stepSeen = Statement(
    """
    UPDATE step SET state = 'seen', at = ?
    WHERE challenge_id = ? AND state IN ('queued', 'sent') AND factor IN ('push', 'pull') AND EXISTS
    (SELECT 1 FROM challenge c WHERE c.id = ? AND c.decided_at IS NULL)
    """)
