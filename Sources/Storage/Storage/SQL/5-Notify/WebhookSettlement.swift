import Domain
import Relay
import Webhooks
import World

/// What came of calls. Every statement bears being run twice: it looks for what the try found, and the audit's rows have
/// ids that follow from the operation.
extension Store {
    public func settle(_ settled: WebhookSettlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let mark: OperationID = operation.identifier("callback.disabled")
        var writes = EndpointHealthRows.counted(settled, as: operation)
        for (index, effect) in settled.effects.enumerated() {
            // The first is that of the one that was tried.
            let reason = index == 0 ? settled.reason : nil
            switch effect {
            case .delivered(let call): writes.append(BoundStatement(dropArrived, .id(call)))
            case .retry(let call, let due, let failures):
                writes.append(requeue(call, at: due, failures, reason, settled))
                writes.append(BoundStatement(delayFollowers, .timestamp(due), .id(call), .timestamp(due)))
            case .suspended(let call, let failures):
                writes.append(requeue(call, at: settled.at, failures, reason, settled))
            case .dead(let call, let failures):
                let id: OperationID = operation.identifier("callback.dead \(call.text)")
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

    /// That it works is written last: where this ends halfway, it counts as failing still, and the next call that arrives
    /// begins anew. What has arrived has, however that is.
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
    /// So often at most, however much there is.
    static let makeDueLimit = 1000

    /// Where hastening begins. Nothing is for later than that.
    static let farthest = Timestamp(seconds: 253_402_300_799)

    /// What is for later is due now. The website may be away again before it has had all of it: so that one answer of its
    /// does not use up the tries of everything, the next try of each is given for nothing.
    ///
    /// Very many may wait: some at a time, so that requests come in between. None beyond the furthest that was left the time
    /// before: what fails anew meanwhile is mostly for later than that, and is not met again and again.
    ///
    /// - Returns: up to where to go on; nil where nothing is left.
    static func makeDue(_ website: WebsiteID, at now: Timestamp, upTo: Timestamp) -> Query<Timestamp?> {
        let which: [SQLValue] = [.id(website), .timestamp(now), .timestamp(upTo)]
        let script = Script(
            "hasten calls", writes: [BoundStatement(hastenSome, values: [.timestamp(now), .timestamp(now)] + which)],
            reads: [BoundStatement(furthest, values: which)])
        return Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.timestamp(0) }
    }
}

/// How it stands with a website, as its calls make it.
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

    /// Where other relays know better, it is not disabled.
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
    /// Of a failed try, and how many there were with it.
    fileprivate var failed: (call: OutboxEntryID, failures: Int)? {
        switch self {
        case .retry(let call, _, let failures), .dead(let call, let failures), .suspended(let call, let failures):
            (call, failures)
        case .delivered, .disabled, .recovered: nil
        }
    }
}

/// Whoever has it in hand by now: it has arrived.
private let dropArrived = Statement("DELETE FROM outbox WHERE id = ? AND kind = '\(WebhookRows.kind)'")

private let releaseEntry = Statement(
    """
    UPDATE outbox SET attempts = ?, call_at = ?, reason = coalesce(?, reason), holder = NULL, claim = NULL
    WHERE id = ? AND kind = '\(WebhookRows.kind)' AND dead_at IS NULL AND holder = ? AND attempts <= ?
    """)

/// What comes after the end of a challenge is no sooner due than that, whose row has the challenge's id.
private let delayFollowers = Statement(
    """
    UPDATE outbox SET call_at = ? WHERE challenge_id = ? AND kind = '\(WebhookRows.kind)' AND place > 0
    AND dead_at IS NULL AND holder IS NULL AND call_at < ?
    """)

private let auditDead = Statement(
    Audit.columns + """
         SELECT ?, ?, 'callback.dead', o.website_id, o.user_id, o.challenge_id, o.device_id, ?, NULL
        FROM outbox o WHERE o.id = ? AND o.kind = '\(WebhookRows.kind)' AND o.dead_at IS NULL AND o.holder = ?
        """ + Audit.once)

private let die = Statement(
    """
    UPDATE outbox SET dead_at = ?, attempts = ?, reason = coalesce(?, reason), call_at = NULL, holder = NULL, claim = NULL
    WHERE id = ? AND kind = '\(WebhookRows.kind)' AND dead_at IS NULL AND holder = ?
    """)

private let later = " website_id = ? AND dead_at IS NULL AND call_at > ? AND call_at <= ? AND holder IS NULL"

/// The oldest of them will be the first. What another relay's clock has written is due now, too. In the order of the index
/// in whole, upwards: by its last column alone, or downwards, MariaDB would sort them all, each time.
private let hastenSome = Statement(
    """
    UPDATE outbox SET call_at = CASE WHEN created_at < ? THEN created_at ELSE ? END,
    attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END
    WHERE /*S! id IN (SELECT id FROM outbox WHERE */
    """ + later + " ORDER BY website_id, dead_at, call_at LIMIT 500 /*S! ) */")

private let furthest = Statement("SELECT call_at FROM outbox WHERE" + later + " ORDER BY call_at DESC LIMIT 1")

private let works = Statement(
    "UPDATE callback SET since = NULL, tries = 0 WHERE website_id = ? AND state = 'active' AND since IS NOT NULL")

/// The website is called where it was tried.
private let stillThere = "EXISTS (SELECT 1 FROM website w WHERE w.id = website_id AND w.callback = ?)"

/// In front of the call's own row: it is counted while that is as it was when it was tried.
private let fails = Statement(
    """
    UPDATE callback SET since = coalesce(since, ?), tries = tries + 1 WHERE website_id = ? AND state = 'active'
    AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = ? AND o.holder = ? AND o.attempts < ?) AND \(stillThere)
    """)

/// Once: where it comes again, an operator may have enabled the website meanwhile.
private let disable = Statement(
    """
    UPDATE callback SET state = 'disabled', stopped_by = ?, since = ?, operation = ?
    WHERE website_id = ? AND state = 'active' AND (? = 1 OR (since <= ? AND tries >= ?))
    AND \(stillThere) AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.operation = ?)
    """)

private let auditDisabled = Statement(
    Audit.columns + """
         SELECT ?, ?, 'callback.disabled', cb.website_id, NULL, NULL, NULL, cb.stopped_by, NULL
        FROM callback cb WHERE cb.website_id = ? AND cb.operation = ?
        """ + Audit.once)
