import Domain
import Relay
import World

extension Store: RetentionStore {
    public func drop(_ rubbish: ExpiredRows, by relay: RelayID) async throws(StoreFailure) -> DeletionResult? {
        let found = try await run(ExpiredRowSearch.find(rubbish))
        let script = Script(
            "retention",
            writes: [
                BoundStatement(addTask), BoundStatement(takeChore, .id(relay), .id(relay)),
            ] + ExpiredRowSearch.drop(rubbish, found, by: relay), reads: [BoundStatement(holdsTask, .id(relay))])
        let isMine = try await run(Query(script: script) { rows in rows.first?.isEmpty == false })
        return isMine ? DeletionResult(count: found.count, mark: found.mark, isLast: found.isLast) : nil
    }
}

/// The search for expired rows of one kind, which locks nothing, and their deletion.
private enum ExpiredRowSearch {
    struct Found: Sendable {
        var count = 0
        var mark: Int64 = 0
        var isLast = true
        var ids: [SQLValue] = []
    }

    static func find(_ rubbish: ExpiredRows) -> Query<Found> {
        let before = SQLValue.timestamp(rubbish.before)
        let limit = SQLValue.integer(Int64(rubbish.limit))
        let step =
            switch rubbish.kind {
            case .answers: BoundStatement(findAnswers, before, limit)
            case .secrets: BoundStatement(findSecrets, before, limit)
            case .smsUsage: BoundStatement(findTallies, .text(SMSCharge.day(rubbish.before)), limit)
            case .dead: BoundStatement(findDead, before, limit)
            case .webhooks: BoundStatement(findWebhooks, before, limit)
            case .activations: BoundStatement(findActivations, before, limit)
            case .codes: BoundStatement(findCodes, before, limit)
            case .challenges:
                BoundStatement(findChallenges, .timestamp(Timestamp(milliseconds: rubbish.mark)), before, limit)
            case .audit: BoundStatement(findAudit, before, .integer(rubbish.mark), limit)
            }
        return Query(script: Script("retention", reads: [step])) { rows throws(StoreFailure) in
            var found = Found()
            found.isLast = rows[0].count < rubbish.limit
            found.count = rows[0].count
            switch rubbish.kind {
            case .answers, .secrets, .smsUsage, .codes, .activations: break
            case .dead, .webhooks:
                for row in rows[0] { found.ids.append(try row.value(0)) }
            case .challenges:
                found.mark = rubbish.mark
                for row in rows[0] {
                    found.mark = try row.timestamp(1).milliseconds
                    if try row.bool(2) { found.ids.append(try row.value(0)) }
                }
                found.count = found.ids.count
                // All rows of the page were asked at the same moment, and all of them stay.
                if found.mark == rubbish.mark, found.count == 0, !found.isLast { found.mark += 1 }
            case .audit:
                found.mark = try rows[0].last?.integer(0) ?? rubbish.mark
                found.count = 0
                for row in rows[0] where try row.bool(1) { found.count += 1 }
                // Further rows are younger, except those of relays whose clocks differ.
                if found.count == 0 {
                    found.mark = rubbish.mark
                    found.isLast = true
                }
            }
            return found
        }
    }

    /// Deletes the rows that were found, if the relay still holds the task's lease. A relay that was
    /// stopped meanwhile therefore deletes nothing.
    static func drop(_ rubbish: ExpiredRows, _ found: Found, by relay: RelayID) -> [BoundStatement] {
        guard found.count > 0 else { return [] }
        let before = SQLValue.timestamp(rubbish.before)
        let (count, holder) = (SQLValue.integer(Int64(found.count)), SQLValue.id(relay))
        switch rubbish.kind {
        case .answers: return [BoundStatement(dropAnswers, before, holder, count)]
        case .secrets: return [BoundStatement(dropSecrets, before, holder, count)]
        case .smsUsage: return [BoundStatement(dropTallies, .text(SMSCharge.day(rubbish.before)), holder, count)]
        case .activations: return [BoundStatement(dropActivations, before, holder, count)]
        case .codes: return [BoundStatement(dropCodes, before, holder, count)]
        case .dead, .webhooks:
            return all(found.ids).map { BoundStatement(dropEntries, values: $0 + [before, before, holder]) }
        case .challenges:
            return all(found.ids).flatMap { ids in
                [dropSteps, dropSentCodes, dropChallenges].map { BoundStatement($0, values: ids + [holder]) }
            }
        case .audit: return [BoundStatement(dropAudit, .integer(rubbish.mark), .integer(found.mark), before, holder)]
        }
    }

    /// Divides the ids into groups of the size of a statement. The last group is filled up with a
    /// repeated id.
    private static func all(_ ids: [SQLValue]) -> [[SQLValue]] {
        stride(from: 0, to: ids.count, by: places).map { start in
            let some = ids[start..<min(start + places, ids.count)]
            return some + Array(repeating: ids[start], count: places - some.count)
        }
    }
}

private let places = 100
private let those = "IN (" + Array(repeating: "?", count: places).joined(separator: ", ") + ")"

private let addTask = Statement(
    """
    INSERT INTO task_lease (name, holder) VALUES ('retention', NULL)
    /*M! ON DUPLICATE KEY UPDATE name = task_lease.name */ /*S! ON CONFLICT DO NOTHING */
    """)
private let takeChore = Statement(
    """
    UPDATE task_lease SET holder = ? WHERE name = 'retention' AND
    (holder IS NULL OR holder = ? OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = task_lease.holder))
    """)
private let holdsTask = Statement("SELECT 1 FROM task_lease WHERE name = 'retention' AND holder = ?")
private let isMine = " EXISTS (SELECT 1 FROM task_lease WHERE name = 'retention' AND holder = ?) "

/// Returns a statement that deletes the first rows of a table in the order of an index.
private func first(_ table: String, _ condition: String, by order: String) -> String {
    """
    DELETE FROM \(table) WHERE
    /*M! \(condition) AND \(isMine) ORDER BY \(order) LIMIT ? */
    /*S! rowid IN (SELECT rowid FROM \(table) WHERE \(condition) AND \(isMine) ORDER BY \(order) LIMIT ?) */
    """
}

private let findAnswers = Statement("SELECT 1 FROM idempotency WHERE created_at < ? LIMIT ?")
private let dropAnswers = Statement(first("idempotency", "created_at < ?", by: "created_at"))

private let findSecrets = Statement("SELECT 1 FROM operation_secret WHERE expires_at < ? LIMIT ?")
private let dropSecrets = Statement(first("operation_secret", "expires_at < ?", by: "expires_at"))

/// The tallies of hours and users before that day, which no limit uses any more. The tallies of
/// days stay for the accounts.
private let oldTallies = "period < ? AND (length(period) = 13 OR length(scope) = 32)"
private let findTallies = Statement("SELECT 1 FROM sms_usage WHERE " + oldTallies + " LIMIT ?")
private let dropTallies = Statement(first("sms_usage", oldTallies, by: "period, scope"))

private let findDead = Statement("SELECT id FROM outbox WHERE due_at IS NULL AND dead_at < ? LIMIT ?")
private let findWebhooks = Statement(
    """
    SELECT id FROM outbox WHERE due_at IS NULL AND dead_at IS NULL AND kind = 'webhook' AND expires_at < ? LIMIT ?
    """)
/// Deletes the entries that were found, except those that an operator has replayed since then.
private let dropEntries = Statement(
    "DELETE FROM outbox WHERE id " + those
        + " AND (dead_at < ? OR (dead_at IS NULL AND kind = 'webhook' AND expires_at < ?)) AND" + isMine)

private let findActivations = Statement("SELECT 1 FROM activation WHERE expires_at < ? LIMIT ?")
private let dropActivations = Statement(first("activation", "expires_at < ?", by: "expires_at"))

private let oldCodes = "challenge_id IS NULL AND expires_at < ?"
private let findCodes = Statement("SELECT 1 FROM sent_code WHERE " + oldCodes + " LIMIT ?")
private let dropCodes = Statement(first("sent_code", oldCodes, by: "challenge_id"))

private let findChallenges = Statement(
    """
    SELECT c.id, c.asked_at, CASE WHEN c.decided_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.challenge_id = c.id)
        AND NOT EXISTS (SELECT 1 FROM device d WHERE d.user_id = c.user_id AND d.approval = c.id AND d.state = 'waiting')
        AND NOT EXISTS (SELECT 1 FROM factor f WHERE f.user_id = c.user_id AND f.approval = c.id AND f.state = 'waiting')
        THEN 1 ELSE 0 END
    FROM challenge c WHERE c.asked_at >= ? AND c.asked_at < ? ORDER BY c.asked_at LIMIT ?
    """)
private let dropSteps = Statement("DELETE FROM step WHERE challenge_id " + those + " AND" + isMine)
private let dropSentCodes = Statement("DELETE FROM sent_code WHERE challenge_id " + those + " AND" + isMine)
private let dropChallenges = Statement("DELETE FROM challenge WHERE id " + those + " AND" + isMine)

/// Finds old audit rows. The newest row stays, because the number of the next one is derived from
/// it.
private let findAudit = Statement(
    """
    SELECT id, at < ? FROM audit WHERE id > ? AND id < (SELECT max(id) FROM audit) ORDER BY id LIMIT ?
    """)
private let dropAudit = Statement("DELETE FROM audit WHERE id > ? AND id <= ? AND at < ? AND" + isMine)
