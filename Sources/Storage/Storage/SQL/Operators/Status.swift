import Relay
import World

/// The overview for operators. It counts only small tables, so it costs the same with ten million
/// users.
public struct StoreStatus: Sendable, Equatable {
    /// The entries of one kind that are not finished.
    public struct Waiting: Sendable, Equatable {
        public let kind: String
        public let count: Int64
        /// The due time of the oldest entry. If it is long past, probably no relay works.
        public let oldestDue: Timestamp
    }

    public let websites: Int64
    /// The number of relays in the table. A dead relay counts until another one detects its
    /// failure.
    public let relays: Int64
    public let waiting: [Waiting]
    /// The number of dead letters.
    public let dead: Int64
    /// The number of disabled webhook endpoints. `shelved` counts the webhooks that wait for them.
    public let disabled: Int64
    public let shelved: Int64

    public static let query = Query(
        script: Script(
            "status",
            reads: [countWebsites(), countRelays(), countEntries(), countDisabled()])
    ) { rows throws(StoreFailure) in
        var waiting: [Waiting] = []
        var dead: Int64 = 0
        var shelved: Int64 = 0
        for row in rows[2] {
            dead += try row.integer("dead_count")
            shelved += try row.integer("shelved_count")
            guard let oldestDue = try row.optionalTimestamp("oldest_due_at") else { continue }
            waiting.append(
                Waiting(kind: try row.text("kind"), count: try row.integer("due_count"), oldestDue: oldestDue))
        }
        return StoreStatus(
            websites: try rows[0].first?.integer("website_count") ?? 0,
            relays: try rows[1].first?.integer("relay_count") ?? 0, waiting: waiting, dead: dead,
            disabled: try rows[3].first?.integer("disabled_count") ?? 0, shelved: shelved)
    }

    private static let countWebsites = Statement(
        "SELECT count(*) AS website_count FROM website WHERE state = 'active'")

    static let countRelays = Statement("SELECT count(*) AS relay_count FROM relay")

    /// Counts the entries. Webhooks of disabled endpoints do not count as due.
    private static let countEntries = Statement(
        """
        SELECT o.kind, count(CASE WHEN ep.website_id IS NULL THEN \(dueAt) END) AS due_count,
        min(CASE WHEN ep.website_id IS NULL THEN \(dueAt) END) AS oldest_due_at, count(o.dead_at) AS dead_count,
        count(CASE WHEN ep.website_id IS NOT NULL THEN o.webhook_due_at END) AS shelved_count
        FROM outbox o LEFT JOIN webhook_endpoint ep ON ep.website_id = o.website_id AND ep.state = 'disabled'
        GROUP BY o.kind ORDER BY o.kind
        """)

    private static let dueAt = "coalesce(o.due_at, o.webhook_due_at)"

    private static let countDisabled = Statement(
        """
        SELECT count(*) AS disabled_count FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
        WHERE ep.state = 'disabled' AND w.webhook_url IS NOT NULL
        """)
}
