import Domain
import Relay
import Webhooks
import World

/// The operator's queries about webhook endpoints.
public enum WebhookEndpoints {
    /// The sealed secrets with which webhooks are signed: see `WebhookSecretSeal`.
    public struct Secrets: Sendable, Equatable {
        public let sealed: [UInt8]
        public let sealedBy: String

        public init(sealed: [UInt8], sealedBy: String) {
            self.sealed = sealed
            self.sealedBy = sealedBy
        }
    }

    /// An endpoint for a website that has none.
    public struct New: Sendable {
        public let url: String
        public let secrets: Secrets

        public init(url: String, secrets: Secrets) {
            self.url = url
            self.secrets = secrets
        }
    }

    public struct View: Sendable {
        public let sealed: [UInt8]
        /// The time until which a second secret is valid, too; nil if there is one secret.
        public let previousUntil: Timestamp?
        public let health: WebhookHealth
        /// The number of webhooks that wait. `oldest` is the creation time of the oldest one.
        public let waiting: Int64
        public let oldest: Timestamp?
        /// The number of dead letters.
        public let dead: Int64
    }

    /// Finds the endpoint of a website; nil if it has none.
    public static func find(_ website: WebsiteID) -> Query<View?> {
        let reads = [BoundStatement(endpoint, .id(website)), BoundStatement(countWebhooks, .id(website))]
        return Query(script: Script("webhook endpoint", reads: reads)) { rows throws(StoreFailure) in
            guard let row = rows[0].first, let counts = rows[1].first else { return nil }
            return View(
                sealed: try row.blob(0), previousUntil: try row.optionalTimestamp(1), health: try row.health(2),
                waiting: try counts.integer(0), oldest: try counts.optionalTimestamp(1), dead: try counts.integer(2))
        }
    }

    // MARK: Changes

    /// Replaces the secrets. The answer is false if somebody else has changed them meanwhile.
    public static func rotate(
        _ website: WebsiteID, from old: [UInt8], to new: Secrets, previousUntil: Timestamp?, at now: Timestamp,
        as operation: Operation
    ) -> Query<Bool> {
        change(
            "rotate", website, "webhook.rotated", at: now, as: operation,
            BoundStatement(
                changeSecrets, .blob(new.sealed), .text(new.sealedBy), .timestamp(previousUntil), .id(operation),
                .id(website), .blob(old)))
    }

    /// Disables the endpoint; its webhooks wait from now on. The answer is false if it is disabled
    /// already.
    public static func disable(_ website: WebsiteID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "disable", website, "webhook.disabled", at: now, as: operation,
            BoundStatement(stop, .word(WebhookHealth.Reason.operator), .timestamp(now), .id(operation), .id(website)))
    }

    /// Enables the endpoint, with a failure count of zero. `makeDue` must run before it. The answer
    /// is false if the endpoint is not disabled.
    public static func enable(_ website: WebsiteID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "enable", website, "webhook.enabled", at: now, as: operation,
            BoundStatement(start, .id(operation), .id(website)))
    }

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
        Query(change: Change("replay", operation, [audit("webhook.replayed", website, at: now, as: operation)])) {
            $0.happened
        }
    }

    /// Counts the dead letters that were created at or after `since` and died until `now`.
    public static func countDead(_ website: WebsiteID, since: Timestamp?, until now: Timestamp) -> Query<Int64> {
        let read = BoundStatement(deadWebhooks, .id(website), .timestamp(now), .timestamp(since), .timestamp(since))
        return Query(script: Script("dead calls", reads: [read])) { rows throws(StoreFailure) in
            try rows[0].first?.integer(0) ?? 0
        }
    }

    /// Replays some of these dead letters. Each call is one transaction, so that relays work in
    /// between. The answer is true while more may remain.
    public static func replayDead(_ website: WebsiteID, since: Timestamp?, at now: Timestamp) -> Query<Bool> {
        let which: [SQLValue] = [.id(website), .timestamp(now), .timestamp(since), .timestamp(since)]
        let script = Script(
            "replay dead",
            writes: [BoundStatement(revive, values: [.timestamp(now), .timestamp(now + WebhookRows.life)] + which)],
            reads: [BoundStatement(deadWebhooks, values: which)])
        return Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.integer(0) ?? 0 > 0 }
    }

    /// Deletes some webhooks of a website without an endpoint. The answer is true while more may
    /// remain.
    public static func drop(_ website: WebsiteID) -> Query<Bool> {
        let script = Script(
            "drop calls", writes: [BoundStatement(dropWebhooks, .id(website), .id(website))],
            reads: [BoundStatement(anyWebhook, .id(website), .id(website))])
        return Query(script: script) { rows in rows.first?.isEmpty == false }
    }

    /// Changes the endpoint of a website whose row this change has written.
    ///
    /// - Parameter secrets: the secrets of a new endpoint.
    static func steps(
        of website: WebsiteID, from old: String?, to new: String?, _ secrets: Secrets?, as operation: Operation
    ) -> [BoundStatement] {
        let mine: [SQLValue] = [.id(website), .id(operation)]
        if let secrets {
            return [
                BoundStatement(end, values: [.id(website)] + mine),
                BoundStatement(begin, values: [.blob(secrets.sealed), .text(secrets.sealedBy), .id(operation)] + mine),
            ]
        }
        return old == new ? [] : [BoundStatement(new == nil ? end : move, values: [.id(website)] + mine)]
    }

    private static func change(
        _ name: StaticString, _ website: WebsiteID, _ event: String, at now: Timestamp, as operation: Operation,
        _ step: BoundStatement
    ) -> Query<Bool> {
        let noted = BoundStatement(
            auditChange, .id(operation), .timestamp(now), .text(event), .id(website), .id(operation))
        return Query(change: Change(name, operation, [step, noted])) { $0.happened }
    }

    private static func audit(
        _ event: String, _ website: WebsiteID, at now: Timestamp, as operation: Operation
    ) -> BoundStatement {
        BoundStatement(auditWord, .id(operation), .timestamp(now), .text(event), .id(website))
    }
}

extension Row {
    /// Reads the health from five columns: state, disabled_by, disabled_at, failing_since,
    /// failed_attempts.
    func health(_ column: Int) throws(StoreFailure) -> WebhookHealth {
        switch try text(column) {
        case "active":
            let attempts = try integer(column + 4)
            guard let since = try optionalTimestamp(column + 3), attempts > 0 else { return WebhookHealth() }
            return WebhookHealth(.failing(since: since, attempts: Int(attempts)))
        case "disabled":
            let reason: WebhookHealth.Reason = try word(column + 1)
            return WebhookHealth(.disabled(reason, since: try timestamp(column + 2)))
        case let other: throw .internal("column \(column) holds the unknown word \(other)")
        }
    }
}

private let endpoint = Statement(
    """
    SELECT ep.secrets, ep.previous_until, ep.state, ep.disabled_by, ep.disabled_at, ep.failing_since,
    ep.failed_attempts FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id WHERE ep.website_id = ? AND w.webhook_url IS NOT NULL
    """)

private let countWebhooks = Statement(
    "SELECT count(webhook_due_at), min(CASE WHEN dead_at IS NULL THEN created_at END), count(dead_at) FROM outbox "
        + "/*M! FORCE INDEX (outbox_webhook) */ WHERE website_id = ?")

// MARK: Changes with the website

private let ownOperation = " EXISTS (SELECT 1 FROM website w WHERE w.id = ? AND w.operation = ?)"

private let begin = Statement(
    """
    INSERT INTO webhook_endpoint (website_id, secrets, sealed_by, state, failed_attempts, operation)
    SELECT w.id, ?, ?, 'active', 0, ? FROM website w WHERE w.id = ? AND w.operation = ?
    """)

private let end = Statement("DELETE FROM webhook_endpoint WHERE website_id = ? AND" + ownOperation)

/// Clears the failures after a change of the URL, because they belong to the former one. A disabled
/// endpoint stays disabled.
private let move = Statement(
    "UPDATE webhook_endpoint SET failing_since = NULL, failed_attempts = 0 WHERE website_id = ? AND state = 'active' AND"
        + ownOperation)

private let leftovers = "website_id = ? AND EXISTS (SELECT 1 FROM website w WHERE w.id = ? AND w.webhook_url IS NULL)"

private let dropWebhooks = Statement(
    """
    DELETE FROM outbox WHERE
    /*M! \(leftovers) LIMIT 500 */
    /*S! rowid IN (SELECT rowid FROM outbox WHERE \(leftovers) LIMIT 500) */
    """)
private let anyWebhook = Statement("SELECT 1 FROM outbox WHERE " + leftovers + " LIMIT 1")

// MARK: Changes of the endpoint alone

private let changeSecrets = Statement(
    """
    UPDATE webhook_endpoint SET secrets = ?, sealed_by = ?, previous_until = ?, operation = ?
    WHERE website_id = ? AND secrets = ?
    """)

private let stop = Statement(
    """
    UPDATE webhook_endpoint SET state = 'disabled', disabled_by = ?, disabled_at = ?, operation = ?
    WHERE website_id = ? AND state = 'active'
    """)

private let start = Statement(
    """
    UPDATE webhook_endpoint SET state = 'active', disabled_by = NULL, disabled_at = NULL, failing_since = NULL,
    failed_attempts = 0, operation = ?
    WHERE website_id = ? AND state = 'disabled'
    """)

private let auditChange = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, ep.website_id, NULL, NULL, NULL, 'operator', NULL FROM webhook_endpoint ep
        WHERE ep.website_id = ? AND ep.operation = ?
        """ + Audit.once)

private let auditWord = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, ep.website_id, NULL, NULL, NULL, 'operator', NULL FROM webhook_endpoint ep WHERE ep.website_id = ?
        """ + Audit.once)

private let dead = "website_id = ? AND dead_at <= ? AND (? IS NULL OR created_at >= ?)"

private let deadWebhooks = Statement("SELECT count(*) FROM outbox WHERE " + dead)

private let revive = Statement(
    """
    UPDATE outbox SET dead_at = NULL, attempts = 0, holder = NULL, lease = NULL, webhook_due_at = ?, expires_at = ? WHERE
    /*M! \(dead) LIMIT 500 */
    /*S! rowid IN (SELECT rowid FROM outbox WHERE \(dead) LIMIT 500) */
    """)
