import Domain
import Relay
import World

extension WebhookRows {
    /// The maximum number of `makeDue` scripts in a row.
    static let makeDueLimit = 1000

    /// The bound with which `makeDue` begins; no webhook is due later.
    static let farthest = Timestamp(seconds: 253_402_300_799)

    /// Makes webhooks due now that are waiting for a later time. The website may fail again before
    /// it has received all of them. One answer must not use up the attempts of all, so the next
    /// attempt of each is free.
    ///
    /// Many webhooks may wait. The query therefore changes some at a time, so that other scripts
    /// run in between. It changes none beyond the latest that the previous query left. Webhooks
    /// that fail meanwhile mostly wait longer than that, and are not made due again and again.
    ///
    /// - Returns: the bound for the next query; nil if no webhook is left.
    static func makeDue(_ website: WebsiteID, at now: Timestamp, upTo: Timestamp) -> Query<Timestamp?> {
        let (now, website, upTo) = (SQLValue.timestamp(now), SQLValue.id(website), SQLValue.timestamp(upTo))
        let script = Script(
            "make webhooks due", writes: [makeSomeDue(now: now, website: website, upTo: upTo)],
            reads: [latestWaiting(website: website, now: now, upTo: upTo)])
        return Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.timestamp("webhook_due_at") }
    }

    /// Makes some webhooks due; their creation time determines the order. It includes webhooks whose
    /// due time another relay's clock wrote. The order is that of the whole index, ascending. With
    /// the last column alone, or descending, MariaDB would sort all rows each time.
    private static let makeSomeDue = Statement(
        """
        UPDATE outbox SET webhook_due_at = CASE WHEN created_at < :now THEN created_at ELSE :now END,
        attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END
        WHERE /*S! id IN (SELECT id FROM outbox WHERE */ \(waiting)
        ORDER BY website_id, dead_at, webhook_due_at LIMIT 500 /*S! ) */
        """)

    private static let latestWaiting = Statement(
        "SELECT webhook_due_at FROM outbox WHERE \(waiting) ORDER BY webhook_due_at DESC LIMIT 1")

    /// The condition for the webhooks of a website that wait for a later time within the bound.
    private static let waiting = """
        website_id = :website AND dead_at IS NULL AND webhook_due_at > :now AND webhook_due_at <= :upTo
        AND holder IS NULL
        """
}
