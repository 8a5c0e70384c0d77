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
}

// MARK: Reading

extension OutboxAdmin {
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
        let step = entries(
            kind: .text(wanted.kind), onlyDead: .bool(wanted.onlyDead), website: .text(wanted.website),
            username: .text(wanted.username), limit: .integer(Int64(wanted.limit)))
        return Query(script: Script("outbox", reads: [step])) { rows throws(StoreFailure) in
            var list: [Row] = []
            for row in rows[0] { list.append(try row.entry()) }
            return list
        }
    }

    /// The number of ids in a page of dead letters.
    public static let deadPageSize = 100

    /// Returns the ids of dead letters after an id, in order: a page, however many there are.
    public static func dead(after id: OutboxEntryID?) -> Query<[OutboxEntryID]> {
        let after = id.map { SQLValue.id($0) } ?? .blob([])
        return Query(script: Script("outbox", reads: [deadEntries(entry: after)])) { rows throws(StoreFailure) in
            var ids: [OutboxEntryID] = []
            for row in rows[0] { ids.append(try row.id("id")) }
            return ids
        }
    }

    private static let deadEntries = Statement(
        """
        SELECT id FROM outbox WHERE id > :entry AND dead_at IS NOT NULL ORDER BY id LIMIT \(deadPageSize)
        """)

    private static let entries = Statement(
        """
        \(columns) WHERE (:kind IS NULL OR o.kind = :kind) AND (:onlyDead = 0 OR o.dead_at IS NOT NULL)
        AND (:website IS NULL OR w.name = :website) AND (:username IS NULL OR u.username = :username)
        ORDER BY coalesce(o.created_at, o.due_at), o.id LIMIT :limit
        """)

    private static let columns = """
        SELECT o.id, o.kind, o.event, w.name AS website_name, u.username, o.challenge_id, o.created_at,
        coalesce(o.due_at, o.webhook_due_at) AS next_due_at, o.expires_at, o.dead_at, o.attempts, o.reason, o.holder,
        CASE WHEN EXISTS (SELECT 1 FROM relay r WHERE r.id = o.holder) THEN 1 ELSE 0 END AS is_held,
        CASE WHEN EXISTS (SELECT 1 FROM webhook_endpoint ep WHERE ep.website_id = o.website_id AND ep.state = 'disabled')
        THEN 1 ELSE 0 END AS is_shelved
        FROM outbox o LEFT JOIN challenge c ON c.id = o.challenge_id
        LEFT JOIN user u ON u.id = coalesce(o.user_id, c.user_id)
        LEFT JOIN website w ON w.id = coalesce(o.website_id, u.website_id)
        """

    public static func row(_ id: OutboxEntryID) -> Query<Row?> {
        Query(script: Script("outbox", reads: [entryByID(entry: .id(id))])) { rows throws(StoreFailure) in
            try rows[0].first?.entry()
        }
    }

    private static let entryByID = Statement("\(columns) WHERE o.id = :entry")
}

extension Row {
    fileprivate func entry() throws(StoreFailure) -> OutboxAdmin.Row {
        OutboxAdmin.Row(
            id: try id("id"), kind: try text("kind"), event: try optionalText("event"),
            website: try optionalText("website_name"), username: try optionalText("username"),
            challenge: try optionalID("challenge_id"), createdAt: try optionalTimestamp("created_at"),
            dueAt: try optionalTimestamp("next_due_at"), expiresAt: try optionalTimestamp("expires_at"),
            deadAt: try optionalTimestamp("dead_at"), attempts: try integer("attempts"),
            reason: try optionalText("reason"), holder: try optionalID("holder"), holderLives: try bool("is_held"),
            isShelved: try bool("is_shelved"))
    }
}

// MARK: Changes

extension OutboxAdmin {
    /// Replays a dead letter as if it had just been written. The answer is false if there is no
    /// such dead letter. An entry that is not genuine stays dead, because no relay would send it.
    public static func replay(_ id: OutboxEntryID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "replay", rows: [.entry(id).signed], operation,
            auditReplay(operation: .id(operation), now: .timestamp(now), entry: .id(id)),
            revive(
                now: .timestamp(now), expiresAt: .timestamp(now + AccountEventRows.life), entry: .id(id),
                operation: .id(operation)),
            reviveWebhook(
                now: .timestamp(now), expiresAt: .timestamp(now + WebhookRows.life), entry: .id(id),
                operation: .id(operation)))
    }

    private static let auditReplay = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
        SELECT :operation, :now, 'outbox.replayed', \(ofEntry) AND o.dead_at IS NOT NULL
        \(Audit.once)
        """)

    private static let ofEntry = """
        u.website_id, u.id, o.challenge_id, o.device_id, o.event
        FROM outbox o LEFT JOIN user u ON u.id = o.user_id WHERE o.id = :entry
        """

    private static let revive = Statement(
        """
        UPDATE outbox SET dead_at = NULL, ambiguous_at = NULL, attempts = 0, due_at = :now, expires_at = :expiresAt
        WHERE id = :entry AND kind <> 'webhook' AND \(Guards.audited)
        """)

    private static let reviveWebhook = Statement(
        """
        UPDATE outbox SET dead_at = NULL, attempts = 0, holder = NULL, lease = NULL, webhook_due_at = :now,
        expires_at = :expiresAt
        WHERE id = :entry AND kind = 'webhook' AND \(Guards.audited)
        """)

    /// Deletes an entry that is not deleted with its login, with its secret. The answer is false if
    /// there is none.
    public static func drop(_ id: OutboxEntryID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "drop", rows: [], operation, auditDrop(operation: .id(operation), now: .timestamp(now), entry: .id(id)),
            dropSecret(entry: .id(id), operation: .id(operation)), StepSettlement.drop(id, as: operation))
    }

    /// The secret of a mail is stored under the id of its entry.
    private static let dropSecret = Statement(
        "DELETE FROM operation_secret WHERE operation = :entry AND \(Guards.audited)")

    private static let auditDrop = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
        SELECT :operation, :now, 'outbox.dropped', \(ofEntry)
        AND (o.challenge_id IS NULL OR o.kind = 'webhook' OR o.dead_at IS NOT NULL)
        \(Audit.once)
        """)

    private static func change(
        _ name: StaticString, rows: [SignedRows], _ operation: Operation, _ steps: BoundStatement...
    ) -> Query<Bool> {
        Query(change: Change(name, operation, rows: rows, steps)) { rows in rows.happened }
    }
}
