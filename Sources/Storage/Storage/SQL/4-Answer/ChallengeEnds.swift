import Domain
import Relay
import World

extension Store: AnswerStore {
    public func challenge(_ id: ChallengeID, of user: UserID) async throws(StoreFailure) -> ChallengeRow? {
        try await challenge(id, challengeOfUser, stepsOfUser, .id(user))
    }

    public func challenge(_ id: ChallengeID, of website: WebsiteID) async throws(StoreFailure) -> ChallengeRow? {
        try await challenge(id, challengeOfWebsite, stepsOfWebsite, .id(website))
    }

    private func challenge(
        _ id: ChallengeID, _ statement: Statement, _ steps: Statement, _ owner: SQLValue
    ) async throws(StoreFailure) -> ChallengeRow? {
        let script = Script(
            "challenge", rows: [.challenge(id), .user(asked: id)],
            reads: [BoundStatement(statement, .id(id), owner), BoundStatement(steps, .id(id), owner)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                var steps: [ChallengeRow.Step] = []
                for step in rows[1] { steps.append(try ChallengeSteps.read(step)) }
                return try Challenges.read(row, steps)
            })
    }

    public func close(_ closing: ChallengeEnd, as operation: Operation) async throws(StoreFailure)
        -> ChallengeEndResult?
    {
        let life = closing.life
        let now = SQLValue.timestamp(closing.at)
        let end: [SQLValue] = [
            .word(life.state), .word(life.decision), .word(life.reason), .word(closing.factor), .word(closing.proof),
            .id(closing.device?.id), .text(closing.receipt), .word(closing.uv), now, .id(operation),
            .id(closing.challenge),
        ]
        let consequence = AnswerEffects(closing, operation)
        // The lock keeps the guards about phone and user true until the commit, because every
        // change of either locks the user's row.
        var writes = (closing.device?.user ?? closing.code?.user).map { [BoundStatement(Locks.hold, .id($0))] } ?? []
        if life.state == .expired {
            writes.append(BoundStatement(expire, values: end + [now]))
        } else if let phone = closing.device {
            let known: [SQLValue] = [now, .id(phone.id), .blob(phone.key)]
            let approves = life.decision == .approve || life.reason == .wrongNumber
            writes.append(
                approves
                    ? BoundStatement(approveByPhone, values: end + known + [.integer(Int64(phone.failures))])
                    : BoundStatement(closeByPhone, values: end + known))
        } else if let code = closing.code {
            writes.append(code.ends(closing, end))
        } else {
            writes.append(BoundStatement(closeOpen, values: end + [now]))
        }
        let mine: [SQLValue] = [.id(closing.challenge), .id(operation)]
        // Unfinished steps with another factor than the one that was answered led to nothing.
        let answered: Factor? = life.endOfStep == .answered ? closing.factor : nil
        let others: StepState = answered == nil ? life.endOfStep : .skipped
        writes.append(
            BoundStatement(
                endStep,
                values: [.word(answered), .word(life.endOfStep), .word(others), now, .id(closing.challenge)] + mine))
        if let answered, closing.proof != nil {
            writes.append(BoundStatement(addStep, values: [.word(answered), now, .word(answered)] + mine))
        }
        if let code = closing.code { writes += code.usedUp(closing, mine, as: operation) }
        if let phone = closing.device {
            writes.append(BoundStatement(seePhone, values: [now, .id(phone.id)] + mine))
            if life.decision == .approve, phone.failures > 0 {
                writes.append(BoundStatement(forgetFailures, values: [.id(phone.id)] + mine))
            }
        }
        writes.append(BoundStatement(dropEntries, values: [.id(closing.challenge)] + mine))
        writes.append(LoginDecidedRows.insertLoginDecided(closing.challenge, at: closing.at, as: operation))
        let outcome = life.decision?.rawValue ?? life.reason?.rawValue
        writes.append(
            BoundStatement(auditEnd, values: [.id(operation), now, .text("\(closing.event)"), .text(outcome)] + mine))
        writes += consequence?.after ?? []
        // The effects include the `login.decided` entries of all the user's challenges, also of
        // this one.
        let rows = closing.rows + (consequence?.rows ?? [LoginDecidedRows.row(closing.challenge, as: operation)])
        let change = Change("close", operation, rows: rows, writes, reads: consequence?.reads ?? [])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened else { return nil }
                guard let consequence else { return ChallengeEndResult(became: nil, others: []) }
                return try consequence.came(of: rows)
            })
    }

    public func challenge(
        of user: UserID, meantBy operation: OperationID, at begun: Timestamp
    ) async throws(StoreFailure) -> ChallengeID? {
        let script = Script(
            "meant",
            reads: [
                BoundStatement(closedBy, .id(operation), .id(user)),
                BoundStatement(newestBy, .id(user), .timestamp(begun)),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first ?? rows[1].first else { return nil }
                return try row.id(0)
            })
    }

    public func eligibility(of device: DeviceID) async throws(StoreFailure) -> AnswerEligibility? {
        try await run(
            Query(script: Script("standing", reads: [BoundStatement(standingOfDevice, .id(device))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return AnswerEligibility(
                    device: try row.word(0), user: try row.word(1), failures: Int(try row.integer(2)),
                    failedAt: try row.optionalTimestamp(3))
            })
    }

    public func recordRefusal(_ refused: RefusedDecision, as operation: Operation) async throws(StoreFailure) {
        let change = Change(
            "refused", operation,
            [
                BoundStatement(
                    auditRefused, .id(operation), .timestamp(refused.at), .id(refused.website), .id(refused.user),
                    .id(refused.challenge), .id(refused.device), .word(refused.fault))
            ])
        try await run(Query(change: change) { _ in () })
    }
}

extension ChallengeEnd {
    /// The challenge's row, and the rows on which an approval relies. Any other end only takes
    /// rights away, and must not be prevented by a row that somebody else has changed.
    ///
    /// The user's row comes first, because other changes of the user wait for it.
    fileprivate var rows: [SignedRows] {
        guard life.decision == .approve else {
            return (device?.user ?? code?.user).map { [.user($0).lenient, .challenge(challenge).lenient] }
                ?? [.challenge(challenge).lenient]
        }
        if let device { return [.user(device.user).signed, .challenge(challenge).signed, .device(device.id).signed] }
        if let code { return [.user(code.user).signed, .challenge(challenge).signed] + code.rows }
        return [.challenge(challenge).signed]
    }
}

extension ChallengeLife {
    /// The state that the end gives to the unfinished step.
    fileprivate var endOfStep: StepState {
        switch state {
        case .answered: .answered
        case .expired: .expired
        case .failed: reason == .wrongNumber ? .answered : .skipped
        case .asked, .sent, .cancelled: .skipped
        }
    }
}

private let challengeColumns =
    "SELECT " + Challenges.columns + " FROM challenge c JOIN user u ON u.id = c.user_id WHERE c.id = ? AND"
private let challengeOfUser = Statement(challengeColumns + " c.user_id = ?")
private let challengeOfWebsite = Statement(challengeColumns + " c.website_id = ?")

/// Reads steps through their challenge, so that another owner's challenge reads as not found.
private let stepColumns =
    ChallengeSteps.columns + "challenge c JOIN step s ON s.challenge_id = c.id WHERE c.id = ? AND"
private let stepsOfUser = Statement(stepColumns + " c.user_id = ? ORDER BY s.ordinal")
private let stepsOfWebsite = Statement(stepColumns + " c.website_id = ? ORDER BY s.ordinal")

private let closedBy = Statement("SELECT challenge_id FROM audit WHERE operation = ? AND user_id = ?")
private let newestBy = Statement(
    "SELECT id FROM challenge WHERE user_id = ? AND asked_at <= ? ORDER BY asked_at DESC, id LIMIT 1")

/// Statements that end a challenge.
enum ChallengeEnds {
    static let end = """
        UPDATE challenge SET state = ?, decision = ?, reason = ?, factor = coalesce(?, factor), proof = ?, device_id = ?,
        receipt = ?, uv = ?, decided_at = ?, operation = ? WHERE id = ? AND decided_at IS NULL
        """

    /// The condition that this change has ended the challenge.
    static let ended = " EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.operation = ?)"
}

private let expire = Statement(ChallengeEnds.end + " AND expires_at <= ?")
private let closeOpen = Statement(ChallengeEnds.end + " AND expires_at > ?")
private let closeByPhone = Statement(
    ChallengeEnds.end + """
         AND expires_at > ? AND EXISTS (SELECT 1 FROM device d
        WHERE d.id = ? AND d.thumbprint = ? AND d.state = 'active' AND d.user_id = challenge.user_id)
        """)

/// Ends a challenge by an approval of a phone, also by one with a wrong number. The user must be
/// active, and the phone's failure count must be as it was judged. A denial has no such conditions.
private let approveByPhone = Statement(
    ChallengeEnds.end + """
         AND expires_at > ? AND EXISTS (SELECT 1 FROM device d JOIN user u ON u.id = d.user_id
        WHERE d.id = ? AND d.thumbprint = ? AND d.state = 'active' AND d.user_id = challenge.user_id
        AND d.failures = ? AND u.state = 'active')
        """)

private let endStep = Statement(
    """
    UPDATE step SET state = CASE WHEN factor = ? THEN ? ELSE ? END, at = ?
    WHERE challenge_id = ? AND state IN ('queued', 'sent', 'seen') AND
    """ + ChallengeEnds.ended)

/// Adds a step if the factor of the answer had not begun or was already left. The reason `late`
/// distinguishes it, for example from a second push.
private let addStep = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at, reason)
    SELECT c.id, (SELECT coalesce(max(s.ordinal), 0) + 1 FROM step s WHERE s.challenge_id = c.id), ?, 'answered', ?,
    CASE WHEN EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = c.id AND s.factor = ?) THEN 'late' END
    FROM challenge c WHERE c.id = ? AND c.operation = ?
    AND NOT EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = c.id AND s.state = 'answered')
    """)

private let seePhone = Statement("UPDATE device SET last_seen_at = ? WHERE id = ? AND" + ChallengeEnds.ended)

/// Resets the failure count, but only if the challenge had a number. Without a number, an approval
/// does not show that the user does not guess.
private let forgetFailures = Statement(
    """
    UPDATE device SET failures = 0, failed_at = NULL WHERE id = ? AND EXISTS
    (SELECT 1 FROM challenge c WHERE c.id = ? AND c.operation = ? AND c.number IS NOT NULL)
    """)

private let dropEntries = Statement(
    "DELETE FROM outbox WHERE challenge_id = ? AND" + OutboxRows.exceptWebhooks + " AND" + ChallengeEnds.ended)

private let auditEnd = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, c.website_id, c.user_id, c.id, c.device_id, ?, c.proof
        FROM challenge c WHERE c.id = ? AND c.operation = ?
        """ + Audit.once)

private let standingOfDevice = Statement(
    """
    SELECT d.state, u.state, d.failures, d.failed_at FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = ?
    """)

private let auditRefused = Statement(
    Audit.columns + " SELECT ?, ?, 'decision.refused', ?, ?, ?, ?, ?, NULL /*M! FROM DUAL */ WHERE 1 = 1" + Audit.once)
