import Domain
import Relay
import World

extension Store: CascadeStore {
    public func cascade(_ challenge: ChallengeID) async throws(StoreFailure) -> CascadeRow? {
        let id = SQLValue.id(challenge)
        let script = Script(
            "cascade", rows: [.challenge(challenge), .user(asked: challenge)],
            reads: [openChallenge, stepsOf, phonesOf, codesOf, nextOf].map { BoundStatement($0, id) })
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                var steps: [ChallengeRow.Step] = []
                for step in rows[1] { steps.append(try ChallengeSteps.read(step)) }
                var codes: [CodeFactor] = []
                for code in rows[3] { codes.append(try CodeFactors.read(code)) }
                return CascadeRow(
                    challenge: challenge, user: try row.id(0), website: try row.text(1), policy: try row.text(2),
                    context: try row.blob(3), askedAt: try row.timestamp(4), expiresAt: try row.timestamp(5),
                    language: try row.optionalText(6), steps: steps,
                    phones: try AskablePhones.read(rows[2]), codes: codes, isKnown: try row.bool(8),
                    areCodesLocked: try row.bool(7), hasNext: !rows[4].isEmpty)
            })
    }

    public func begin(_ step: NewStep, as operation: Operation) async throws(StoreFailure) -> BegunStep? {
        let (id, now, done) = (SQLValue.id(step.challenge), SQLValue.timestamp(step.at), SQLValue.id(operation))
        let ordinal = SQLValue.integer(Int64(step.after + 1))
        var writes = [BoundStatement(Locks.hold, .id(step.user)), BoundStatement(CascadeSteps.hold, id)]
        if let charge = step.charge { writes.append(SMSBudget.hold(charge)) }
        writes += [
            BoundStatement(
                auditBegin, done, now, .word(step.factor), id, now, .integer(Int64(step.after)),
                .bool(step.isByHand), .bool(!step.factor.isCode), .bool(step.code == nil), .id(step.code?.factor),
                .integer(step.code?.counter)),
            BoundStatement(leaveBehind, now, id, done),
        ]
        for push in step.pushes {
            writes.append(
                BoundStatement(
                    insertPush, .id(push.id), id, .timestamp(push.leasedUntil), .id(push.holder), .id(push.device),
                    .id(step.user), .bool(step.limits.isKnown), .timestamp(step.limits.since),
                    .integer(Int64(step.limits.pushes)), .bool(step.limits.isKnown), now, done))
        }
        writes += [
            BoundStatement(
                insertStep, ordinal, .word(step.factor), id, .word(step.factor), .word(step.state), now,
                .text(step.refusal), id, done)
        ]
        if let charge = step.charge {
            writes.append(
                BoundStatement(
                    refuseText, values: [now, .text(NewStep.limited), id, ordinal, done] + SMSBudget.values(charge)))
        }
        writes += [
            BoundStatement(nameFactor, ordinal, id, done),
            BoundStatement(dropNextBy, id, done),
        ]
        if let next = step.next {
            writes.append(BoundStatement(insertNext, .id(next.id), .timestamp(next.due), .id(next.holder), id, done))
        }
        if let code = step.code { writes += OutboxRows.code(code, as: operation) }
        if let code = step.code, let charge = step.charge { writes.append(SMSBudget.count(charge, message: code.id)) }
        if step.code != nil || step.refusal != nil {
            writes.append(CascadeSteps.makeDue(step.challenge, at: step.at, by: operation))
        }
        let change = Change(
            "begin", operation, rows: step.rows, writes,
            reads: [BoundStatement(newest, id), BoundStatement(pushesOf, id)])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened, let row = rows[1].first else { return nil }
                var pushes: [OutboxEntryID] = []
                for push in rows[2] { pushes.append(try push.id(0)) }
                return BegunStep(
                    factor: try row.word(0), state: try row.word(1), reason: try row.optionalText(3), pushes: pushes)
            })
    }

    public func begun(by operation: OperationID) async throws(StoreFailure) -> BegunStep? {
        try await run(
            Query(script: Script("begun", reads: [BoundStatement(newestBy, .id(operation))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return BegunStep(
                    factor: try row.word(0), state: try row.word(1), reason: try row.optionalText(3), pushes: [])
            })
    }

    public func dropNext(_ challenge: ChallengeID, after steps: Int) async throws(StoreFailure) {
        let id = SQLValue.id(challenge)
        let script = Script(
            "nothing left",
            writes: [BoundStatement(CascadeSteps.hold, id), BoundStatement(forgetNext, id, id, .integer(Int64(steps)))])
        try await run(Query(script: script) { _ in () })
    }
}

extension NewStep {
    /// The rows that the step relies on, and the outbox entries that it writes. The user's row
    /// comes first, because other changes of the user wait for it.
    fileprivate var rows: [SignedRows] {
        [.user(user).signed, .challenge(challenge).signed] + pushes.map { .entry($0.id).signed }
            + (next.map { [.entry($0.id).signed] } ?? []) + (code.map { OutboxRows.rows($0) } ?? [])
    }
}

/// Statements of scripts in which a step ends.
enum CascadeSteps {
    /// Makes the next factor due at once if no step is under way any more. The statement must
    /// follow the audit row of the change.
    static func makeDue(_ challenge: ChallengeID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        BoundStatement(dueNow, .timestamp(now), .id(challenge), .id(operation))
    }

    /// Makes the next factors due for all open challenges of a user.
    static func makeDue(of user: UserID, at now: Timestamp, by operation: Operation) -> BoundStatement {
        makeDue(of: user, at: now, noted: operation.id)
    }

    /// Makes the next factors due, after a change whose audit row has another id than the
    /// operation's.
    static func makeDue(of user: UserID, at now: Timestamp, noted: OperationID) -> BoundStatement {
        BoundStatement(hastenedOfUser, .timestamp(now), .id(user), .id(noted))
    }

    /// Locks the challenge's row, so that changes of its steps run one after the other.
    static let hold = Statement("UPDATE challenge SET state = state WHERE id = ?")
}

/// The columns of a step, and how they are read.
enum ChallengeSteps {
    /// The columns of the alias `s`.
    static let columns = "SELECT s.factor, s.state, s.at, s.reason FROM "

    static func read(_ row: Row) throws(StoreFailure) -> ChallengeRow.Step {
        ChallengeRow.Step(
            factor: try row.word("factor"), state: try row.word("state"), at: try row.timestamp("at"),
            reason: try row.optionalText("reason"))
    }
}

private let openChallenge = Statement(
    """
    SELECT c.user_id, w.display_name, c.policy, c.context, c.asked_at, c.expires_at, c.language,
    u.codes_locked_at IS NOT NULL, c.known FROM challenge c JOIN user u ON u.id = c.user_id JOIN website w ON w.id = c.website_id
    WHERE c.id = ? AND c.decided_at IS NULL AND u.state = 'active'
    """)

private let stepsOf = Statement(
    ChallengeSteps.columns + "step s WHERE s.challenge_id = ? ORDER BY s.ordinal")

private let phonesOf = Statement(
    AskablePhones.columns + "JOIN challenge c ON c.user_id = d.user_id WHERE d.state = 'active' AND c.id = ?"
        + AskablePhones.order)

private let codesOf = Statement(
    "SELECT " + CodeFactors.columns
        + " FROM factor f JOIN challenge c ON c.user_id = f.user_id WHERE f.state = 'active' AND c.id = ?")

private let nextOf = Statement("SELECT 1 FROM outbox WHERE challenge_id = ? AND kind = 'next' AND dead_at IS NULL")

/// Audits the step if everything that it relies on still is as it was read.
private let auditBegin = Statement(
    Audit.columns + """
         SELECT ?, ?, 'factor.begun', c.website_id, c.user_id, c.id, NULL, ?, NULL
        FROM challenge c JOIN user u ON u.id = c.user_id
        WHERE c.id = ? AND c.decided_at IS NULL AND c.expires_at > ? AND u.state = 'active'
        AND (SELECT count(*) FROM step s WHERE s.challenge_id = c.id) = ?
        AND (? = 1 OR NOT EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = c.id AND s.state = 'seen'))
        AND (? = 1 OR u.codes_locked_at IS NULL)
        AND (? = 1 OR EXISTS (SELECT 1 FROM factor f
        WHERE f.id = ? AND f.user_id = c.user_id AND f.state = 'active' AND f.counter = ?))
        """ + Audit.once)

private let begun = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let leaveBehind = Statement(
    "UPDATE step SET state = 'expired', at = ? WHERE challenge_id = ? AND state IN ('queued', 'sent', 'seen') AND"
        + begun)

private let insertPush = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder, device_id)
    SELECT ?, 'push', ?, ?, 0, ?, d.id FROM device d
    WHERE d.id = ? AND d.state = 'active' AND d.user_id = ? AND
    (SELECT count(*) FROM challenge c JOIN step s ON s.challenge_id = c.id
    WHERE c.user_id = d.user_id AND c.known = ? AND c.asked_at > ? AND s.factor = 'push'
    AND coalesce(s.reason, '') <> 'late') < ?
    AND NOT EXISTS (SELECT 1 FROM challenge k
    WHERE k.user_id = d.user_id AND k.known > ? AND k.decided_at IS NULL AND k.expires_at > ?) AND
    """ + begun)

/// Inserts the step. A push for which the limit leaves no push entry becomes a pull: the relay
/// waits for the phones.
private let insertStep = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at, reason)
    SELECT c.id, ?, CASE WHEN ? = 'push' AND NOT EXISTS
    (SELECT 1 FROM outbox o WHERE o.challenge_id = ? AND o.kind = 'push') THEN 'pull' ELSE ? END, ?, ?, ?
    FROM challenge c WHERE c.id = ? AND
    """ + begun)

private let refuseText = Statement(
    "UPDATE step SET state = 'refused', at = ?, reason = ? WHERE challenge_id = ? AND ordinal = ? AND" + begun
        + " AND NOT " + SMSBudget.room)

private let nameFactor = Statement(
    """
    UPDATE challenge SET factor = (SELECT s.factor FROM step s WHERE s.challenge_id = challenge.id AND s.ordinal = ?)
    WHERE id = ? AND
    """ + begun)

private let dropNextBy = Statement("DELETE FROM outbox WHERE challenge_id = ? AND kind = 'next' AND" + begun)
private let forgetNext = Statement(
    """
    DELETE FROM outbox WHERE challenge_id = ? AND kind = 'next'
    AND (SELECT count(*) FROM step s WHERE s.challenge_id = ?) = ?
    """)

private let insertNext = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder)
    SELECT ?, 'next', c.id, ?, 0, ? FROM challenge c WHERE c.id = ? AND
    """ + begun)

private let newest = Statement(
    ChallengeSteps.columns + "step s WHERE s.challenge_id = ? ORDER BY s.ordinal DESC LIMIT 1")
private let newestBy = Statement(
    ChallengeSteps.columns + """
        audit a JOIN step s ON s.challenge_id = a.challenge_id
        WHERE a.operation = ? AND a.event = 'factor.begun' ORDER BY s.ordinal DESC LIMIT 1
        """)
private let pushesOf = Statement("SELECT id FROM outbox WHERE challenge_id = ? AND kind = 'push'")

private let underWay = """
    (SELECT 1 FROM step s WHERE s.challenge_id = outbox.challenge_id AND s.state IN ('queued', 'sent', 'seen'))
    """

private let dueNow = Statement(
    """
    UPDATE outbox SET due_at = ?, holder = NULL, lease = NULL
    WHERE challenge_id = ? AND kind = 'next' AND dead_at IS NULL AND NOT EXISTS
    """ + underWay + " AND" + begun)

private let hastenedOfUser = Statement(
    """
    UPDATE outbox /*M! JOIN challenge c ON c.id = outbox.challenge_id */
    SET /*M! outbox.due_at */ /*S! due_at */ = ?, /*M! outbox.holder */ /*S! holder */ = NULL,
    /*M! outbox.lease */ /*S! lease */ = NULL WHERE outbox.kind = 'next' AND dead_at IS NULL AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */ c.user_id = ? AND c.decided_at IS NULL /*S! ) */
    AND NOT EXISTS
    """ + underWay + " AND" + begun)
