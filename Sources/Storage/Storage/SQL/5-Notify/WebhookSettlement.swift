import Domain
import Relay
import Webhooks
import World

/// Settles webhooks. Every statement is safe to run twice: its conditions name what the attempt
/// found, and the ids of its audit rows are derived from the operation.
extension Store {
    public func settle(_ settled: WebhookSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let mark: OperationID = operation.identifier("webhook.disabled")
        var writes = EndpointHealthRows.counted(settled, as: operation)
        for (index, effect) in settled.effects.enumerated() {
            // The first effect is that of the webhook that was attempted.
            let reason = index == 0 ? settled.reason : nil
            switch effect {
            case .delivered(let call): writes.append(BoundStatement(dropArrived, .id(call)))
            case .retry(let call, let due, let failures):
                writes.append(requeue(call, at: due, failures, reason, settled))
                writes.append(BoundStatement(delayFollowers, .timestamp(due), .id(call), .timestamp(due)))
            case .suspended(let call, let failures):
                writes.append(requeue(call, at: settled.at, failures, reason, settled))
            case .dead(let call, let failures):
                let id: OperationID = operation.identifier("webhook.dead \(call.text)")
                let held: [SQLValue] = [.id(call), .id(settled.relay)]
                writes.append(
                    BoundStatement(
                        auditDead,
                        values: [.id(id), .timestamp(settled.at), .text(reason.map { String($0.prefix(32)) })] + held))
                writes.append(
                    BoundStatement(
                        die, values: [.timestamp(settled.at), .integer(Int64(failures)), .text(reason)] + held))
            case .disabled(let reason): writes += EndpointHealthRows.disabled(settled, reason, noted: mark)
            case .recovered: break
            }
        }
        let script = Script("settle calls", writes: writes, reads: [BoundStatement(Audit.happened, .id(mark))])
        let hasDisabled = try await run(Query(script: script) { rows in rows.happened })
        if settled.isBack { await recover(settled) }
        return hasDisabled
    }

    private func requeue(
        _ call: OutboxEntryID, at due: Timestamp, _ failures: Int, _ reason: String?, _ settled: WebhookSettlement
    ) -> BoundStatement {
        BoundStatement(
            releaseEntry, .integer(Int64(failures)), .timestamp(due), .text(reason), .id(call), .id(settled.relay),
            .integer(Int64(failures)))
    }

    /// Makes all waiting webhooks due, then records that the endpoint works. If this ends halfway,
    /// the endpoint still counts as failing, and the next delivered webhook starts it again. An
    /// error here does not undo the delivery.
    private func recover(_ settled: WebhookSettlement) async {
        guard (try? await makeDue(settled.website, at: settled.at)) != nil else { return }
        _ = try? await run(Script("website works", writes: [BoundStatement(works, .id(settled.website))]))
    }

    private func makeDue(_ website: WebsiteID, at now: Timestamp) async throws(StoreFailure) {
        var next: Timestamp? = WebhookRows.farthest
        for _ in 0..<WebhookRows.makeDueLimit {
            guard let upTo = next else { return }
            next = try await run(WebhookRows.makeDue(website, at: now, upTo: upTo))
        }
    }
}

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
        let which: [SQLValue] = [.id(website), .timestamp(now), .timestamp(upTo)]
        let script = Script(
            "hasten calls", writes: [BoundStatement(hastenSome, values: [.timestamp(now), .timestamp(now)] + which)],
            reads: [BoundStatement(furthest, values: which)])
        return Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.timestamp(0) }
    }
}

/// Statements for the health of an endpoint, as the attempts determine it.
private enum EndpointHealthRows {
    static func counted(_ settled: WebhookSettlement, as operation: Operation) -> [BoundStatement] {
        switch settled.tried {
        case .nothing: return []
        case .delivered: return settled.isBack ? [] : [BoundStatement(works, .id(settled.website))]
        case .failed:
            guard let (call, failures) = settled.effects.first?.failed else { return [] }
            return [
                BoundStatement(
                    fails, .timestamp(settled.at), .id(settled.website), .id(call), .id(settled.relay),
                    .integer(Int64(failures)), .text(settled.url))
            ]
        }
    }

    /// Disables the endpoint, unless the results of other relays contradict it.
    static func disabled(_ settled: WebhookSettlement, _ reason: WebhookHealth.Reason, noted mark: OperationID)
        -> [BoundStatement]
    {
        let (website, now) = (SQLValue.id(settled.website), SQLValue.timestamp(settled.at))
        return [
            BoundStatement(
                disable, .word(reason), now, .id(mark), website, .bool(reason != .failures),
                .timestamp(settled.at - WebhookHealth.timeout), .integer(Int64(WebhookHealth.fewestTries)),
                .text(settled.url), .id(mark)),
            BoundStatement(auditDisabled, .id(mark), now, website, .id(mark)),
        ]
    }
}

extension WebhookSettlement {
    fileprivate var isBack: Bool { effects.contains(.recovered) }
}

extension WebhookSettlement.Effect {
    /// The webhook of a failed attempt, with its number of failures.
    fileprivate var failed: (call: OutboxEntryID, failures: Int)? {
        switch self {
        case .retry(let call, _, let failures), .dead(let call, let failures), .suspended(let call, let failures):
            (call, failures)
        case .delivered, .disabled, .recovered: nil
        }
    }
}

/// Deletes a delivered webhook, whichever relay holds it now.
private let dropArrived = Statement("DELETE FROM outbox WHERE id = ? AND kind = '\(WebhookRows.kind)'")

private let releaseEntry = Statement(
    """
    UPDATE outbox SET attempts = ?, webhook_due_at = ?, reason = coalesce(?, reason), holder = NULL, lease = NULL
    WHERE id = ? AND kind = '\(WebhookRows.kind)' AND dead_at IS NULL AND holder = ? AND attempts <= ?
    """)

/// Delays the webhooks that follow the end of a challenge. They must not be due earlier than the
/// end's own webhook, whose id is the challenge's.
private let delayFollowers = Statement(
    """
    UPDATE outbox SET webhook_due_at = ? WHERE challenge_id = ? AND kind = '\(WebhookRows.kind)' AND ordinal > 0
    AND dead_at IS NULL AND holder IS NULL AND webhook_due_at < ?
    """)

private let auditDead = Statement(
    Audit.columns + """
         SELECT ?, ?, 'webhook.dead', o.website_id, o.user_id, o.challenge_id, o.device_id, ?, NULL
        FROM outbox o WHERE o.id = ? AND o.kind = '\(WebhookRows.kind)' AND o.dead_at IS NULL AND o.holder = ?
        """ + Audit.once)

private let die = Statement(
    """
    UPDATE outbox SET dead_at = ?, attempts = ?, reason = coalesce(?, reason), webhook_due_at = NULL, holder = NULL, lease = NULL
    WHERE id = ? AND kind = '\(WebhookRows.kind)' AND dead_at IS NULL AND holder = ?
    """)

private let later =
    " website_id = ? AND dead_at IS NULL AND webhook_due_at > ? AND webhook_due_at <= ? AND holder IS NULL"

/// Makes some webhooks due; their creation time determines the order. It includes webhooks whose
/// due time another relay's clock wrote. The order is that of the whole index, ascending. With the
/// last column alone, or descending, MariaDB would sort all rows each time.
private let hastenSome = Statement(
    """
    UPDATE outbox SET webhook_due_at = CASE WHEN created_at < ? THEN created_at ELSE ? END,
    attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END
    WHERE /*S! id IN (SELECT id FROM outbox WHERE */
    """ + later + " ORDER BY website_id, dead_at, webhook_due_at LIMIT 500 /*S! ) */")

private let furthest = Statement(
    "SELECT webhook_due_at FROM outbox WHERE" + later + " ORDER BY webhook_due_at DESC LIMIT 1")

private let works = Statement(
    """
    UPDATE webhook_endpoint SET failing_since = NULL, failed_attempts = 0
    WHERE website_id = ? AND state = 'active' AND failing_since IS NOT NULL
    """)

/// The condition that the endpoint still has the URL that was attempted.
private let stillThere = "EXISTS (SELECT 1 FROM website w WHERE w.id = website_id AND w.webhook_url = ?)"

/// Counts a failure. It must precede the change of the webhook's own entry, and counts only if the
/// entry is as it was at the attempt.
private let fails = Statement(
    """
    UPDATE webhook_endpoint SET failing_since = coalesce(failing_since, ?), failed_attempts = failed_attempts + 1
    WHERE website_id = ? AND state = 'active' AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = ? AND o.holder = ? AND o.attempts < ?) AND \(stillThere)
    """)

/// Disables the endpoint once. If the statement is repeated, an operator may have enabled the
/// endpoint in between.
private let disable = Statement(
    """
    UPDATE webhook_endpoint SET state = 'disabled', disabled_by = ?, disabled_at = ?, operation = ?
    WHERE website_id = ? AND state = 'active' AND (? = 1 OR (failing_since <= ? AND failed_attempts >= ?))
    AND \(stillThere) AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.operation = ?)
    """)

private let auditDisabled = Statement(
    Audit.columns + """
         SELECT ?, ?, 'webhook.disabled', ep.website_id, NULL, NULL, NULL, ep.disabled_by, NULL
        FROM webhook_endpoint ep WHERE ep.website_id = ? AND ep.operation = ?
        """ + Audit.once)
