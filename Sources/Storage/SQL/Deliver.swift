import Domain
import Relay
import World

extension Store: DeliverStore {
    public func claim(_ claim: Claim) async throws(StoreFailure) -> [ClaimedErrand] {
        let script = Script(
            "claim",
            writes: [
                Step(
                    takeDue,
                    values: [
                        .id(claim.relay), .id(claim.id), .moment(claim.leasedUntil), .moment(claim.now),
                        .id(claim.relay), .integer(Int64(claim.limit)),
                    ])
            ], reads: [Step(claimed, .id(claim.id))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var errands: [ClaimedErrand] = []
                for row in rows[0] {
                    errands.append(
                        ClaimedErrand(id: try row.id(0), kind: try row.word(1), challenge: try row.id(2)))
                }
                return errands
            })
    }

    public func push(_ errand: ErrandID) async throws(StoreFailure) -> PushRow? {
        try await run(
            Query(script: Script("push", reads: [Step(pushOfErrand, .id(errand))])) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return PushRow(
                    challenge: try row.id(0), device: try row.id(8), deviceToken: try row.text(1),
                    environment: try row.word(2),
                    policy: try row.text(3), website: try row.text(4), context: try row.blob(5),
                    askedAt: try row.moment(9), expiresAt: try row.moment(6), attempts: Int(try row.integer(7)))
            })
    }

    public func settle(_ settlement: Settlement, as operation: Operation) async throws(StoreFailure) -> Bool {
        let now = SQLValue.moment(settlement.at)
        let challenge = SQLValue.id(settlement.challenge)
        let outcome = settlement.reason.map { String($0.prefix(32)) } ?? "accepted"
        var writes = [
            Step(hold, challenge),
            Step(auditSettle, .id(operation), now, .text(outcome), .id(settlement.errand)),
        ]
        if settlement.step == .sent {
            writes.append(Step(markSent, challenge, .id(operation)))
            writes.append(Step(stepSent, now, challenge, .id(operation)))
        } else {
            writes.append(
                Step(
                    stepFailed, .word(settlement.step), now, .text(settlement.reason), challenge, challenge,
                    .id(settlement.errand), .id(operation)))
        }
        if let since = settlement.tokenDeadSince {
            writes.append(
                Step(
                    dropToken, .moment(since), .text(settlement.deviceToken), .id(settlement.errand), .id(operation)))
        }
        writes.append(Step(dropErrand, .id(settlement.errand), .id(operation)))
        return try await run(Query(change: Change("settle", operation, writes)) { rows in rows.happened })
    }

    public func postpone(_ errand: ErrandID, until: Timestamp) async throws(StoreFailure) {
        let script = Script("postpone", writes: [Step(putBack, .moment(until), .id(errand))])
        try await run(Query(script: script) { _ in () })
    }
}

/// Nobody frees what a relay leaves that died after it was buried (it may have been taken for dead and lived on), so a
/// holder without a row is nobody.
private let takeDue = Statement(
    """
    UPDATE outbox SET holder = ?, claim = ?, due_at = ?, attempts = attempts + 1
    WHERE /*S! id IN (SELECT id FROM outbox WHERE */
    due_at <= ? AND (holder IS NULL OR holder = ? OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = outbox.holder))
    ORDER BY due_at LIMIT ? /*S! ) */
    """)

private let claimed = Statement("SELECT id, kind, challenge_id FROM outbox WHERE claim = ?")

private let pushOfErrand = Statement(
    """
    SELECT c.id, CASE d.state WHEN 'active' THEN d.push_token ELSE '' END, d.environment, c.policy, w.display_name,
    c.context, c.expires_at, o.attempts, d.id, c.asked_at
    FROM outbox o JOIN challenge c ON c.id = o.challenge_id JOIN device d ON d.id = o.device_id
    JOIN website w ON w.id = c.website_id
    WHERE o.id = ? AND c.decided_at IS NULL
    """)

/// The pushes of a challenge are settled one after the other, each of them seeing what the ones before it left, and none
/// in the middle of the challenge's end, which takes the same rows in the same order.
private let hold = Statement("UPDATE challenge SET state = state WHERE id = ?")

private let auditSettle = Statement(
    Audit.columns + """
         SELECT ?, ?, 'push.settled', c.website_id, c.user_id, c.id, o.device_id, ?, NULL
        FROM outbox o JOIN challenge c ON c.id = o.challenge_id WHERE o.id = ?
        """ + Audit.once)

private let settled = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let markSent = Statement("UPDATE challenge SET state = 'sent' WHERE id = ? AND state = 'asked' AND" + settled)

private let stepSent = Statement(
    """
    UPDATE step SET state = 'sent', at = ?
    WHERE challenge_id = ? AND factor = 'push' AND state = 'queued' AND
    """ + settled)

/// A step has failed only when no other phone's push is still under way.
private let stepFailed = Statement(
    """
    UPDATE step SET state = ?, at = ?, reason = ?
    WHERE challenge_id = ? AND factor = 'push' AND state = 'queued' AND NOT EXISTS
    (SELECT 1 FROM outbox o WHERE o.challenge_id = ? AND o.kind = 'push' AND o.id <> ?) AND
    """ + settled)

private let dropToken = Statement(
    """
    UPDATE device SET push_token = ''
    WHERE push_token_at <= ? AND push_token = ? AND id = (SELECT o.device_id FROM outbox o WHERE o.id = ?) AND
    """ + settled)

private let dropErrand = Statement("DELETE FROM outbox WHERE id = ? AND" + settled)

private let putBack = Statement("UPDATE outbox SET holder = NULL, claim = NULL, due_at = ? WHERE id = ?")
