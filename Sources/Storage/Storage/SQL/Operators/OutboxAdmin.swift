import Domain
import Relay
import World

/// The operator's queries about the outbox.
public enum OutboxAdmin {
    public struct Row: Sendable, Equatable {
        public enum State: String, Sendable, CaseIterable {
            /// A dead letter, which no relay attempts any more.
            case dead
            /// A relay with a heartbeat holds the entry.
            case held
            /// A dead relay held the entry; another one leases it when it is due.
            case left
            /// The entry is due and not leased yet.
            case due
            case waiting
            /// The entry is a webhook to a disabled endpoint, and waits until an operator enables
            /// the endpoint.
            case shelved
        }

        public let id: OutboxEntryID
        public let kind: String
        /// The event that the entry reports; nil for an entry of a login.
        public let event: String?
        public let website: String?
        public let username: String?
        public let challenge: ChallengeID?
        public let createdAt: Timestamp?
        /// The due time; nil for a dead letter.
        public let dueAt: Timestamp?
        public let expiresAt: Timestamp?
        public let deadAt: Timestamp?
        public let attempts: Int64
        /// The result of the last attempt.
        public let reason: String?
        public let holder: RelayID?
        public let holderLives: Bool
        /// Whether the entry is a webhook to a disabled endpoint.
        public let isShelved: Bool

        public func state(at now: Timestamp) -> State {
            guard deadAt == nil, let dueAt else { return .dead }
            if holder != nil, holderLives { return .held }
            if isShelved { return .shelved }
            if holder != nil { return .left }
            return dueAt <= now ? .due : .waiting
        }

        /// Whether the entry is deleted at the end of its login. Webhooks stay in the outbox. A
        /// dead entry of a login was not written by a relay, and stays, too.
        public var goesWithLogin: Bool { challenge != nil && kind != "webhook" && deadAt == nil }
    }

    /// A filter for entries; nil for all.
    public struct Filter: Sendable {
        public var kind: String?
        public var onlyDead = false
        public var website: String?
        public var username: String?
        public var limit = 100

        public init() {}
    }

    /// Lists the entries, the oldest first. They contain no codes, because codes are not stored.
    public static func list(_ wanted: Filter) -> Query<[Row]> {
        let (kind, website, username) = (
            SQLValue.text(wanted.kind), SQLValue.text(wanted.website), SQLValue.text(wanted.username)
        )
        let step = BoundStatement(
            rows, kind, kind, .bool(wanted.onlyDead), website, website, username, username,
            .integer(Int64(wanted.limit)))
        return Query(script: Script("outbox", reads: [step])) { rows throws(StoreFailure) in
            var list: [Row] = []
            for row in rows[0] { list.append(try row.entry()) }
            return list
        }
    }

    public static func row(_ id: OutboxEntryID) -> Query<Row?> {
        Query(script: Script("outbox", reads: [BoundStatement(rowByID, .id(id))])) { rows throws(StoreFailure) in
            try rows[0].first?.entry()
        }
    }

    /// Replays a dead letter as if it had just been written. The answer is false if there is no
    /// such dead letter. An entry that is not genuine stays dead, because no relay would send it.
    public static func replay(_ id: OutboxEntryID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "replay", rows: [.entry(id).signed], operation,
            BoundStatement(auditReplay, .id(operation), .timestamp(now), .id(id)),
            BoundStatement(
                revive, .timestamp(now), .timestamp(now + AccountEventRows.life), .id(id), .id(operation)),
            BoundStatement(
                reviveWebhook, .timestamp(now), .timestamp(now + WebhookRows.life), .id(id), .id(operation)))
    }

    /// Deletes an entry that is not deleted with its login. The answer is false if there is none.
    public static func drop(_ id: OutboxEntryID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "drop", rows: [], operation,
            BoundStatement(auditDrop, .id(operation), .timestamp(now), .id(id)), StepSettlement.drop(id, as: operation))
    }

    private static func change(
        _ name: StaticString, rows: [SignedRows], _ operation: Operation, _ steps: BoundStatement...
    ) -> Query<Bool> {
        Query(change: Change(name, operation, rows: rows, steps)) { rows in rows.happened }
    }
}

extension Row {
    fileprivate func entry() throws(StoreFailure) -> OutboxAdmin.Row {
        OutboxAdmin.Row(
            id: try id(0), kind: try text(1), event: try optionalText(2), website: try optionalText(3),
            username: try optionalText(4), challenge: try optionalID(5), createdAt: try optionalTimestamp(6),
            dueAt: try optionalTimestamp(7), expiresAt: try optionalTimestamp(8), deadAt: try optionalTimestamp(9),
            attempts: try integer(10), reason: try optionalText(11), holder: try optionalID(12),
            holderLives: try bool(13), isShelved: try bool(14))
    }
}

private let columns = """
    SELECT o.id, o.kind, o.event, w.name, u.username, o.challenge_id, o.created_at, coalesce(o.due_at, o.webhook_due_at),
    o.expires_at, o.dead_at, o.attempts, o.reason, o.holder,
    CASE WHEN EXISTS (SELECT 1 FROM relay r WHERE r.id = o.holder) THEN 1 ELSE 0 END,
    CASE WHEN EXISTS (SELECT 1 FROM webhook_endpoint ep WHERE ep.website_id = o.website_id AND ep.state = 'disabled')
    THEN 1 ELSE 0 END
    FROM outbox o LEFT JOIN challenge c ON c.id = o.challenge_id
    LEFT JOIN user u ON u.id = coalesce(o.user_id, c.user_id)
    LEFT JOIN website w ON w.id = coalesce(o.website_id, u.website_id)
    """

private let rows = Statement(
    columns + """
         WHERE (? IS NULL OR o.kind = ?) AND (? = 0 OR o.dead_at IS NOT NULL) AND (? IS NULL OR w.name = ?)
        AND (? IS NULL OR u.username = ?) ORDER BY coalesce(o.created_at, o.due_at), o.id LIMIT ?
        """)
private let rowByID = Statement(columns + " WHERE o.id = ?")

private let ofEntry =
    " u.website_id, u.id, o.challenge_id, o.device_id, o.event, NULL FROM outbox o LEFT JOIN user u ON u.id = o.user_id"

private let auditReplay = Statement(
    Audit.columns + " SELECT ?, ?, 'outbox.replayed'," + ofEntry + " WHERE o.id = ? AND o.dead_at IS NOT NULL"
        + Audit.once)

private let auditDrop = Statement(
    Audit.columns + " SELECT ?, ?, 'outbox.dropped'," + ofEntry
        + " WHERE o.id = ? AND (o.challenge_id IS NULL OR o.kind = 'webhook' OR o.dead_at IS NOT NULL)" + Audit.once)

private let revive = Statement(
    """
    UPDATE outbox SET dead_at = NULL, ambiguous_at = NULL, attempts = 0, due_at = ?, expires_at = ?
    WHERE id = ? AND kind <> 'webhook' AND
    """ + StepSettlement.settled)

private let reviveWebhook = Statement(
    """
    UPDATE outbox SET dead_at = NULL, attempts = 0, holder = NULL, lease = NULL, webhook_due_at = ?, expires_at = ?
    WHERE id = ? AND kind = 'webhook' AND
    """ + StepSettlement.settled)
