import Domain
import Relay
import Webhooks
import World

/// Settles webhooks. Every statement is safe to run twice: its conditions name what the attempt
/// found, and the ids of its audit rows are derived from the operation.
extension Store {
    public func settle(_ settled: WebhookSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let disabling: OperationID = operation.identifier("webhook.disabled")
        var writes = EndpointHealth.counted(settled)
        for (index, effect) in settled.effects.enumerated() {
            // The first effect is that of the webhook that was attempted.
            let reason = index == 0 ? settled.reason : nil
            switch effect {
            case .delivered(let webhook):
                var drop = dropDelivered(entry: .id(webhook))
                // Many webhooks may be settled together.
                drop.isJoined = true
                writes.append(drop)
            case .retry(let webhook, let due, let failures):
                writes.append(settled.requeue(webhook, at: due, failures, reason))
                writes.append(delayFollowers(dueAt: .timestamp(due), challenge: .id(webhook)))
            case .suspended(let webhook, let failures):
                writes.append(settled.requeue(webhook, at: settled.at, failures, reason))
            case .dead(let webhook, let failures):
                writes += settled.makeDead(webhook, failures, reason, as: operation)
            case .disabled(let reason): writes += EndpointHealth.disabled(settled, reason, as: disabling)
            case .recovered: break
            }
        }
        let script = Script("settle webhooks", writes: writes, reads: [Audit.happened(operation: .id(disabling))])
        let hasDisabled = try await run(Query(script: script) { rows in rows.happened })
        if settled.isBack { await recover(settled) }
        return hasDisabled
    }

    /// Makes all waiting webhooks due, then records that the endpoint works. If this ends halfway,
    /// the endpoint still counts as failing, and the next delivered webhook starts it again. An
    /// error here does not undo the delivery.
    private func recover(_ settled: WebhookSettlement) async {
        guard (try? await makeDue(settled.website, at: settled.at)) != nil else { return }
        _ = try? await run(Script("recover endpoint", writes: [EndpointHealth.recovered(settled.website)]))
    }

    private func makeDue(_ website: WebsiteID, at now: Timestamp) async throws(StoreFailure) {
        var next: Timestamp? = WebhookRows.farthest
        for _ in 0..<WebhookRows.makeDueLimit {
            guard let upTo = next else { return }
            next = try await run(WebhookRows.makeDue(website, at: now, upTo: upTo))
        }
    }
}

/// Deletes a delivered webhook, whichever relay holds it now.
private let dropDelivered = Statement("DELETE FROM outbox WHERE id = :entry AND kind = '\(WebhookRows.kind)'")

/// Delays the webhooks that follow the end of a challenge. They must not be due earlier than the
/// end's own webhook, whose id is the challenge's.
private let delayFollowers = Statement(
    """
    UPDATE outbox SET webhook_due_at = :dueAt
    WHERE challenge_id = :challenge AND kind = '\(WebhookRows.kind)' AND ordinal > 0
    AND dead_at IS NULL AND holder IS NULL AND webhook_due_at < :dueAt
    """)

extension WebhookSettlement {
    fileprivate func requeue(
        _ webhook: OutboxEntryID, at due: Timestamp, _ failures: Int, _ reason: String?
    ) -> BoundStatement {
        releaseEntry(
            failures: .integer(Int64(failures)), dueAt: .timestamp(due), reason: .text(reason), entry: .id(webhook),
            relay: .id(relay))
    }
}

private let releaseEntry = Statement(
    """
    UPDATE outbox
    SET attempts = :failures, webhook_due_at = :dueAt, reason = coalesce(:reason, reason), holder = NULL, lease = NULL
    WHERE id = :entry AND kind = '\(WebhookRows.kind)' AND dead_at IS NULL AND holder = :relay AND attempts <= :failures
    """)

extension WebhookSettlement {
    /// Makes a webhook a dead letter. The audit row comes first, because its condition is that the
    /// webhook is not dead yet.
    fileprivate func makeDead(
        _ webhook: OutboxEntryID, _ failures: Int, _ reason: String?, as operation: Operation
    ) -> [BoundStatement] {
        let own: OperationID = operation.identifier("webhook.dead \(webhook.text)")
        return [
            auditDead(
                own: .id(own), now: .timestamp(at), outcome: .text(reason.map { String($0.prefix(32)) }),
                entry: .id(webhook), relay: .id(relay)),
            markDead(
                now: .timestamp(at), failures: .integer(Int64(failures)), reason: .text(reason), entry: .id(webhook),
                relay: .id(relay)),
        ]
    }
}

private let auditDead = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
    SELECT :own, :now, 'webhook.dead', o.website_id, o.user_id, o.challenge_id, o.device_id, :outcome
    FROM outbox o WHERE o.id = :entry AND o.kind = '\(WebhookRows.kind)' AND o.dead_at IS NULL AND o.holder = :relay
    \(Audit.once)
    """)

private let markDead = Statement(
    """
    UPDATE outbox SET dead_at = :now, attempts = :failures, reason = coalesce(:reason, reason), webhook_due_at = NULL,
    holder = NULL, lease = NULL
    WHERE id = :entry AND kind = '\(WebhookRows.kind)' AND dead_at IS NULL AND holder = :relay
    """)
