import Domain
import Relay
import World

extension Store {
    /// Begins a step of a challenge. `BeginScript` has the parts of the script, in the order in
    /// which they run.
    public func begin(_ step: NewStep, as operation: Operation) async throws(StoreFailure) -> BegunStep? {
        let script = BeginScript(step: step, operation: operation)
        let change = Change(
            "begin", operation, rows: script.rows,
            script.audit + script.leaveBehind + script.insertPushes + script.insertStep + script.replaceNext
                + script.sendCode, reads: script.reads)
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened, let row = rows[1].first else { return nil }
                var pushes: [OutboxEntryID] = []
                for push in rows[2] { pushes.append(try push.id("id")) }
                return try row.begunStep(pushes: pushes)
            })
    }
}

/// The script that begins a step.
private struct BeginScript {
    let step: NewStep
    let operation: Operation

    var challenge: SQLValue { .id(step.challenge) }
    var now: SQLValue { .timestamp(step.at) }
    var ordinal: SQLValue { .integer(Int64(step.after + 1)) }

    /// The rows that the step relies on, and the outbox entries that it writes. The user's row
    /// comes first, because other changes of the user wait for it.
    var rows: [SignedRows] {
        [.user(step.user).signed, .challenge(step.challenge).signed] + step.pushes.map { .entry($0.id).signed }
            + (step.next.map { [.entry($0.id).signed] } ?? []) + (step.code.map { CodeEntries.rows($0) } ?? [])
    }
}

/// Part 1 audits the step if everything that it relies on is still as it was read. Everything later
/// depends on the audit row. The locks keep it true until the commit.
extension BeginScript {
    var audit: [BoundStatement] {
        var writes = [Locks.hold(user: .id(step.user)), CascadeSteps.hold(challenge: challenge)]
        if let charge = step.charge { writes.append(SMSBudget.hold(charge)) }
        writes.append(
            auditBegin(
                operation: .id(operation), now: now, factor: .word(step.factor), challenge: challenge,
                steps: .integer(Int64(step.after)), interruptsPhone: .bool(step.interruptsPhone),
                isCode: .bool(step.factor.isCode),
                sendsCode: .bool(step.code != nil), codeFactor: .id(step.code?.factor),
                counter: .integer(step.code?.counter)))
        return writes
    }
}

private let auditBegin = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
    SELECT :operation, :now, 'factor.begun', c.website_id, c.user_id, c.id, :factor
    FROM challenge c JOIN user u ON u.id = c.user_id
    WHERE c.id = :challenge AND c.decided_at IS NULL AND c.expires_at > :now AND \(Guards.mayLogIn)
    AND (SELECT count(*) FROM step s WHERE s.challenge_id = c.id) = :steps
    AND (:interruptsPhone = 1 OR NOT EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = c.id AND s.state = 'seen'))
    AND (:isCode = 0 OR u.codes_locked_at IS NULL)
    AND (:sendsCode = 0 OR EXISTS (SELECT 1 FROM factor f
    WHERE f.id = :codeFactor AND f.user_id = c.user_id AND f.state = 'active' AND f.counter = :counter))
    \(Audit.once)
    """)

/// Part 2 ends the step before it. A push whose service is down stays queued instead.
extension BeginScript {
    var leaveBehind: [BoundStatement] {
        (step.setsPushAside ? [CascadeSteps.setAside(step.challenge, by: operation)] : [])
            + [expireStep(now: now, challenge: challenge, operation: .id(operation))]
    }
}

private let expireStep = Statement(
    """
    UPDATE step SET state = 'expired', at = :now
    WHERE challenge_id = :challenge AND \(CascadeSteps.underWay()) AND \(Guards.audited)
    """)

/// Part 3 puts the pushes into the outbox. This relay has the lease on them.
extension BeginScript {
    var insertPushes: [BoundStatement] {
        step.pushes.map { push in
            insertPush(
                entry: .id(push.id), challenge: challenge, leasedUntil: .timestamp(push.leasedUntil),
                relay: .id(push.holder), device: .id(push.device), user: .id(step.user),
                known: .origin(step.limits.origin), since: .timestamp(step.limits.since),
                pushes: .integer(Int64(step.limits.pushes)), now: now, operation: .id(operation))
        }
    }
}

private let insertPush = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder, device_id)
    SELECT :entry, 'push', :challenge, :leasedUntil, 0, :relay, d.id FROM device d
    WHERE d.id = :device AND d.state = 'active' AND d.user_id = :user AND
    (SELECT count(*) FROM challenge c JOIN step s ON s.challenge_id = c.id
    WHERE c.user_id = d.user_id AND c.known = :known AND c.asked_at > :since AND s.factor = 'push'
    AND coalesce(s.reason, '') <> 'late') < :pushes
    AND NOT EXISTS (SELECT 1 FROM challenge k
    WHERE k.user_id = d.user_id AND k.known > :known AND k.decided_at IS NULL AND k.expires_at > :now)
    AND \(Guards.audited)
    """)

/// Part 4 inserts the step and names its factor in the challenge. A text message for which a tally
/// is full makes the step refused.
extension BeginScript {
    var insertStep: [BoundStatement] {
        var writes = [
            insertStepRow(
                ordinal: ordinal, factor: .word(step.factor), challenge: challenge, state: .word(step.state), now: now,
                reason: .text(step.refusal), operation: .id(operation))
        ]
        if let charge = step.charge {
            writes.append(
                refuseText.bound(
                    [
                        "now": now, "reason": .text(NewStep.limited),
                        "websiteReason": .text(NewStep.websiteLimited), "challenge": challenge, "ordinal": ordinal,
                        "operation": .id(operation),
                    ], lists: SMSBudget.lists(charge)))
        }
        writes.append(nameFactor(ordinal: ordinal, challenge: challenge, operation: .id(operation)))
        return writes
    }
}

/// Inserts the step. A push for which the limit leaves no push entry becomes a pull: the relay
/// waits for the phones.
private let insertStepRow = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at, reason)
    SELECT c.id, :ordinal, CASE WHEN :factor = 'push' AND NOT EXISTS
    (SELECT 1 FROM outbox o WHERE o.challenge_id = :challenge AND o.kind = 'push') THEN 'pull' ELSE :factor END,
    :state, :now, :reason
    FROM challenge c WHERE c.id = :challenge AND \(Guards.audited)
    """)

private let refuseText = Statement(
    """
    UPDATE step SET state = 'refused', at = :now,
    reason = CASE WHEN \(SMSBudget.isWebsiteFull) THEN :websiteReason ELSE :reason END
    WHERE challenge_id = :challenge AND ordinal = :ordinal AND \(Guards.audited) AND NOT (\(SMSBudget.hasRoom))
    """)

private let nameFactor = Statement(
    """
    UPDATE challenge
    SET factor = (SELECT s.factor FROM step s WHERE s.challenge_id = challenge.id AND s.ordinal = :ordinal)
    WHERE id = :challenge AND \(Guards.audited)
    """)

/// Part 5 replaces the entry that begins the next factor.
extension BeginScript {
    var replaceNext: [BoundStatement] {
        var writes = [dropNext(challenge: challenge, operation: .id(operation))]
        if let next = step.next {
            writes.append(
                insertNext(
                    entry: .id(next.id), dueAt: .timestamp(next.due), relay: .id(next.holder), challenge: challenge,
                    operation: .id(operation)))
        }
        return writes
    }
}

private let dropNext = Statement(
    "DELETE FROM outbox WHERE challenge_id = :challenge AND kind = 'next' AND \(Guards.audited)")

private let insertNext = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder)
    SELECT :entry, 'next', c.id, :dueAt, 0, :relay FROM challenge c WHERE c.id = :challenge AND \(Guards.audited)
    """)

/// Part 6 puts the code into the outbox and counts a text message. If the step was refused, the
/// next factor is due at once.
extension BeginScript {
    var sendCode: [BoundStatement] {
        var writes = step.code.map { CodeEntries.insert($0, as: operation) } ?? []
        if let code = step.code, let charge = step.charge { writes.append(SMSBudget.count(charge, message: code.id)) }
        if step.code != nil || step.refusal != nil {
            writes.append(CascadeSteps.makeDue(step.challenge, at: step.at, by: operation))
        }
        return writes
    }
}

/// Part 7 reads the step and its pushes.
extension BeginScript {
    var reads: [BoundStatement] { [newestStep(challenge: challenge), pushesOf(challenge: challenge)] }
}

private let newestStep = Statement(
    "\(ChallengeSteps.columns) step s WHERE s.challenge_id = :challenge ORDER BY s.ordinal DESC LIMIT 1")

private let pushesOf = Statement("SELECT id FROM outbox WHERE challenge_id = :challenge AND kind = 'push'")

extension Row {
    /// Reads `ChallengeSteps.columns`.
    fileprivate func begunStep(pushes: [OutboxEntryID]) throws(StoreFailure) -> BegunStep {
        BegunStep(
            factor: try word("factor"), state: try word("state"), reason: try optionalText("reason"), pushes: pushes)
    }
}

extension Store {
    public func begun(by operation: OperationID) async throws(StoreFailure) -> BegunStep? {
        try await run(
            Query(script: Script("begun", reads: [newestStepBy(operation: .id(operation))])) {
                rows throws(StoreFailure) in try rows[0].first?.begunStep(pushes: [])
            })
    }
}

private let newestStepBy = Statement(
    """
    \(ChallengeSteps.columns) audit a JOIN step s ON s.challenge_id = a.challenge_id
    WHERE a.operation = :operation AND a.event = 'factor.begun' ORDER BY s.ordinal DESC LIMIT 1
    """)
