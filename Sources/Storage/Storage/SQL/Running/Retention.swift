import Domain
import Relay
import World

extension Store: RetentionStore {
    public func drop(_ expired: ExpiredRows, by relay: RelayID) async throws(StoreFailure) -> DeletionResult? {
        var stuck: [String] = []
        if expired.kind == .audit, let dropped = try await dropLinks(expired, by: relay, stuck: &stuck) {
            return dropped
        }
        let found = try await run(ExpiredRowSearch.find(expired))
        let script = Script(
            "retention",
            writes: RetentionLease.writes(relay) + ExpiredRowDeletion.drop(expired, found, by: relay),
            reads: [RetentionLease.read(relay)])
        let isHeld = try await run(Query(script: script) { rows in rows.first?.isEmpty == false })
        return isHeld
            ? DeletionResult(count: found.count, mark: found.mark, isLast: found.isLast, stuck: stuck) : nil
    }
}

/// The lease of the task, which one relay holds.
enum RetentionLease {
    /// The condition that the relay `:relay` holds the lease.
    static let isHeld = "EXISTS (SELECT 1 FROM task_lease WHERE name = 'retention' AND holder = :relay)"

    /// The statements that take the lease if no live relay has it.
    static func writes(_ relay: RelayID) -> [BoundStatement] { [insertTask(), leaseTask(relay: .id(relay))] }

    /// Finds the lease if the relay holds it.
    static func read(_ relay: RelayID) -> BoundStatement { holdsTask(relay: .id(relay)) }
}

private let insertTask = Statement(
    """
    INSERT INTO task_lease (name, holder) VALUES ('retention', NULL)
    /*M! ON DUPLICATE KEY UPDATE name = task_lease.name */ /*S! ON CONFLICT DO NOTHING */
    """)

private let leaseTask = Statement(
    """
    UPDATE task_lease SET holder = :relay WHERE name = 'retention' AND
    (holder IS NULL OR holder = :relay OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = task_lease.holder))
    """)

private let holdsTask = Statement("SELECT 1 FROM task_lease WHERE name = 'retention' AND holder = :relay")

/// The search for expired rows of one kind, which locks nothing.
enum ExpiredRowSearch {
    struct Found: Sendable {
        var count = 0
        var mark: Int64 = 0
        var isLast = true
        var ids: [SQLValue] = []
    }

    static func find(_ expired: ExpiredRows) -> Query<Found> {
        Query(script: Script("retention", reads: [search(expired)])) { rows throws(StoreFailure) in
            var found = Found()
            found.isLast = rows[0].count < expired.limit
            found.count = rows[0].count
            switch expired.kind {
            case .answers, .secrets, .smsUsage, .codes, .activations, .notices, .certificates, .websiteCertificates,
                .recoveries, .usage:
                break
            case .dead, .webhooks, .temporary:
                for row in rows[0] { found.ids.append(try row.value("id")) }
            case .challenges:
                found.mark = expired.mark
                for row in rows[0] {
                    found.mark = try row.timestamp("asked_at").milliseconds
                    if try row.bool("is_unused") { found.ids.append(try row.value("id")) }
                }
                found.count = found.ids.count
                // All rows of the page were asked at the same moment, and all of them stay.
                if found.mark == expired.mark, found.count == 0, !found.isLast { found.mark += 1 }
            case .audit:
                found.mark = try rows[0].last?.integer("id") ?? expired.mark
                found.count = 0
                for row in rows[0] where try row.bool("is_old") { found.count += 1 }
                // Further rows are younger, except those of relays whose clocks differ.
                if found.count == 0 {
                    found.mark = expired.mark
                    found.isLast = true
                }
            }
            return found
        }
    }

    private static func search(_ expired: ExpiredRows) -> BoundStatement {
        let before = SQLValue.timestamp(expired.before)
        let limit = SQLValue.integer(Int64(expired.limit))
        return switch expired.kind {
        case .answers: findAnswers(before: before, limit: limit)
        case .secrets: findSecrets(before: before, limit: limit)
        case .smsUsage: findTallies(day: .text(UsageDay(expired.before).text), limit: limit)
        case .dead: findDead(before: before, limit: limit)
        case .webhooks: findWebhooks(before: before, limit: limit)
        case .activations: findActivations(before: before, limit: limit)
        case .codes: findCodes(before: before, limit: limit)
        case .temporary: TemporaryCodes.findExpired(before: expired.before, limit: expired.limit)
        case .certificates: findCertificates(before: before, limit: limit)
        case .websiteCertificates: findWebsiteCertificates(before: before, limit: limit)
        case .notices: findNotices(before: before, limit: limit)
        case .recoveries: findRecoveries(before: before, limit: limit)
        case .challenges:
            findChallenges(
                mark: .timestamp(Timestamp(milliseconds: expired.mark)), before: before, limit: limit)
        case .usage: findUsage(day: .text(UsageDay(expired.before).text), limit: limit)
        case .audit: findAudit(before: before, mark: .integer(expired.mark), limit: limit)
        }
    }

    private static let findAnswers = Statement("SELECT 1 FROM idempotency WHERE created_at < :before LIMIT :limit")

    private static let findSecrets = Statement("SELECT 1 FROM operation_secret WHERE expires_at < :before LIMIT :limit")

    private static let findTallies = Statement("SELECT 1 FROM sms_usage WHERE \(oldTallies) LIMIT :limit")

    /// The tallies of hours and users before that day, which no limit uses any more. The tallies of
    /// days stay for the accounts.
    static let oldTallies = "period < :day AND (length(period) = 13 OR length(scope) = 32)"

    private static let findUsage = Statement("SELECT 1 FROM website_usage WHERE day < :day LIMIT :limit")

    private static let findDead = Statement(
        "SELECT id FROM outbox WHERE due_at IS NULL AND dead_at < :before LIMIT :limit")

    private static let findWebhooks = Statement(
        """
        SELECT id FROM outbox
        WHERE due_at IS NULL AND dead_at IS NULL AND kind = '\(WebhookRows.kind)' AND expires_at < :before LIMIT :limit
        """)

    private static let findActivations = Statement("SELECT 1 FROM activation WHERE expires_at < :before LIMIT :limit")

    private static let findCertificates = Statement("SELECT 1 FROM certificate WHERE expires_at < :before LIMIT :limit")

    private static let findWebsiteCertificates = Statement(
        "SELECT 1 FROM website_certificate WHERE not_after < :before LIMIT :limit", since: 3)

    private static let findNotices = Statement("SELECT 1 FROM notice WHERE created_at < :before LIMIT :limit")

    private static let findRecoveries = Statement("SELECT 1 FROM recovery WHERE expires_at < :before LIMIT :limit")

    private static let findCodes = Statement("SELECT 1 FROM sent_code WHERE \(oldCodes) LIMIT :limit")

    static let oldCodes = "challenge_id IS NULL AND expires_at < :before"

    private static let findChallenges = Statement(
        """
        SELECT c.id, c.asked_at, CASE WHEN c.decided_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.challenge_id = c.id)
            AND NOT EXISTS (SELECT 1 FROM device d
                WHERE d.user_id = c.user_id AND d.approval = c.id AND d.state = 'waiting')
            AND NOT EXISTS (SELECT 1 FROM factor f
                WHERE f.user_id = c.user_id AND f.approval = c.id AND f.state = 'waiting')
            THEN 1 ELSE 0 END AS is_unused
        FROM challenge c WHERE c.asked_at >= :mark AND c.asked_at < :before ORDER BY c.asked_at LIMIT :limit
        """)

    /// Finds old audit rows without a chain. The newest row stays, because the number of the next
    /// one is derived from it.
    private static let findAudit = Statement(
        """
        SELECT id, CASE WHEN at < :before AND writer IS NULL THEN 1 ELSE 0 END AS is_old FROM audit
        WHERE id > :mark AND id < (SELECT max(id) FROM audit) ORDER BY id LIMIT :limit
        """)
}
