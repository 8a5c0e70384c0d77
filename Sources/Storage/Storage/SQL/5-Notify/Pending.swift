import Domain
import Relay
import World

extension Store: PendingStore {
    public func pending(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [Pending] {
        // In whole seconds, so that phones that ask at the same time share an execution.
        let script = Script("pending", reads: [openOfUser(user: .id(user), now: .timestamp(now.roundedUp))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var pending: [Pending] = []
                for row in rows[0] {
                    pending.append(
                        Pending(
                            challenge: try row.id("id"), nonce: try row.blob("nonce"),
                            context: try row.context("context"),
                            askedAt: try row.timestamp("asked_at"), expiresAt: try row.timestamp("expires_at"),
                            policy: try row.text("policy"), unseen: try row.optionalWord("unseen_factor")))
                }
                return pending
            })
    }
}

/// Reads the open challenges. While a login from a known browser is open, no login from another
/// browser is shown. The user therefore sees one request at a time. A user who has expired sees
/// none.
private let openOfUser = Statement(
    checking: [CheckedTable(.challenge, as: "c")],
    [
        "c.asked_at",
        """
        (SELECT s.factor FROM step s WHERE s.challenge_id = c.id AND s.state IN ('queued', 'sent')
        AND s.factor IN ('push', 'pull') ORDER BY s.ordinal LIMIT 1) AS unseen_factor
        """,
    ],
    from: """
        \(SignedTable.challenge.checked(as: "c")) WHERE {c.user_id = :user} AND c.decided_at IS NULL
        AND c.expires_at > :now AND NOT EXISTS (SELECT 1 FROM user u WHERE u.id = c.user_id AND u.expires_at <= :now)
        AND NOT EXISTS (SELECT 1 FROM challenge k WHERE k.user_id = c.user_id AND k.known > c.known
        AND k.decided_at IS NULL AND k.expires_at > :now) ORDER BY c.asked_at, c.id
        """)

extension Store {
    public func markSeen(_ challenges: [SeenChallenge]) async throws(StoreFailure) {
        let script = Script(
            "mark seen", writes: challenges.map { markStepSeen(now: .timestamp($0.at), challenge: .id($0.challenge)) })
        try await run(Query(script: script) { _ in () })
    }
}

private let markStepSeen = Statement(
    """
    UPDATE step SET state = 'seen', at = :now
    WHERE challenge_id = :challenge AND state IN ('queued', 'sent') AND factor IN ('push', 'pull') AND EXISTS
    (SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.decided_at IS NULL)
    """)
