import Domain
import Relay
import World

/// The operator's queries about the webhooks of an endpoint.
extension WebhookEndpoints {
    /// Makes waiting webhooks due, some at a time. The caller passes `farthest` first, then the
    /// bound of the previous answer. It stops when the answer is nil, or after `makeDueLimit`
    /// queries.
    public static func makeDue(_ website: WebsiteID, at now: Timestamp, upTo: Timestamp) -> Query<Timestamp?> {
        WebhookRows.makeDue(website, at: now, upTo: upTo)
    }

    public static let makeDueLimit = WebhookRows.makeDueLimit
    public static let farthest = WebhookRows.farthest

    /// Audits the replay of dead letters, once; `replayDead` then changes the entries.
    public static func replay(_ website: WebsiteID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        let audit = auditReplay(operation: .id(operation), now: .timestamp(now), website: .id(website))
        return Query(change: Change("replay", operation, [audit])) { $0.happened }
    }

    private static let auditReplay = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, outcome)
        SELECT :operation, :now, 'webhook.replayed', ep.website_id, 'operator' FROM webhook_endpoint ep
        WHERE ep.website_id = :website
        \(Audit.once)
        """)

    /// Counts the dead letters that were created at or after `since` and died until `now`.
    public static func countDead(_ website: WebsiteID, since: Timestamp?, until now: Timestamp) -> Query<Int64> {
        let read = countOfDead(website: .id(website), now: .timestamp(now), since: .timestamp(since))
        return Query(script: Script("dead webhooks", reads: [read])) { rows throws(StoreFailure) in
            try rows[0].first?.integer("dead_count") ?? 0
        }
    }

    private static let countOfDead = Statement("SELECT count(*) AS dead_count FROM outbox WHERE \(isDead)")

    /// The condition for the dead letters.
    private static let isDead =
        "website_id = :website AND dead_at <= :now AND (:since IS NULL OR created_at >= :since)"

    /// Replays some of these dead letters. Each call is one transaction, so that relays work in
    /// between. The answer is true while more may remain.
    public static func replayDead(_ website: WebsiteID, since: Timestamp?, at now: Timestamp) -> Query<Bool> {
        let script = Script(
            "replay dead",
            writes: [
                replaySome(
                    now: .timestamp(now), expiresAt: .timestamp(now + WebhookRows.life), website: .id(website),
                    since: .timestamp(since))
            ],
            reads: [countOfDead(website: .id(website), now: .timestamp(now), since: .timestamp(since))])
        return Query(script: script) { rows throws(StoreFailure) in
            try rows[0].first?.integer("dead_count") ?? 0 > 0
        }
    }

    private static let replaySome = Statement(
        """
        UPDATE outbox SET dead_at = NULL, attempts = 0, holder = NULL, lease = NULL,
        webhook_due_at = :now, expires_at = :expiresAt WHERE
        /*M! \(isDead) LIMIT 500 */
        /*S! rowid IN (SELECT rowid FROM outbox WHERE \(isDead) LIMIT 500) */
        """)

    /// Deletes some webhooks of a website without an endpoint. The answer is true while more may
    /// remain.
    public static func drop(_ website: WebsiteID) -> Query<Bool> {
        let script = Script(
            "drop webhooks", writes: [dropSome(website: .id(website))], reads: [anyLeft(website: .id(website))])
        return Query(script: script) { rows in rows.first?.isEmpty == false }
    }

    private static let dropSome = Statement(
        """
        DELETE FROM outbox WHERE
        /*M! \(isLeft) LIMIT 500 */
        /*S! rowid IN (SELECT rowid FROM outbox WHERE \(isLeft) LIMIT 500) */
        """)

    private static let anyLeft = Statement("SELECT 1 FROM outbox WHERE \(isLeft) LIMIT 1")

    /// The condition for the webhooks of a website without an endpoint.
    private static let isLeft =
        "website_id = :website AND EXISTS (SELECT 1 FROM website w WHERE w.id = :website AND w.webhook_url IS NULL)"
}
