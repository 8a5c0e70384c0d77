import Domain
import Relay
import World

extension Store {
    /// Ends a challenge. `CloseScript` has the parts of the script, in the order in which they run.
    public func close(_ closing: ChallengeEnd, as operation: Operation) async throws(StoreFailure)
        -> ChallengeEndResult?
    {
        let effects = AnswerEffects(closing, operation)
        let close = CloseScript(closing: closing, operation: operation)
        let script = close.short.map { Script("close", operation, short: $0) } ?? close.guarded(with: effects)
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard rows.happened else { return nil }
                guard let effects else { return ChallengeEndResult(became: nil, others: []) }
                return try effects.came(of: rows)
            })
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
        if let device {
            return [.user(device.user).signed, .challenge(challenge).signed, .device(device.id).signed]
                + (posture?.relied == nil ? [] : [.attestation(of: device.id).signed])
        }
        if let code { return [.user(code.user).signed, .challenge(challenge).signed] + code.rows }
        if let approvedFor { return [.user(approvedFor).signed, .challenge(challenge).signed] }
        return [.challenge(challenge).signed]
    }
}

/// The script that ends a challenge.
struct CloseScript {
    let closing: ChallengeEnd
    let operation: Operation

    var now: SQLValue { .timestamp(closing.at) }
    var challenge: SQLValue { .id(closing.challenge) }

    /// Makes the script in its guarded form.
    func guarded(with effects: AnswerEffects?) -> Script {
        // The effects include the `login.decided` entries of all the user's challenges, also of
        // this one.
        let rows =
            closing.rows + Recoveries.rows(answeredBy: closing, as: operation)
            + (effects?.rows ?? [LoginDecidedRows.row(closing.challenge, as: operation)])
            + (closing.code?.announcedRows(as: operation) ?? [])
        let change = Change(
            "close", operation, rows: rows,
            lockUser + endChallenge + endSteps + useCode + updatePhone + useAssertion + notify
                + (closing.code?.announced(closing, as: operation) ?? [])
                + Recoveries.answered(closing, as: operation)
                + (effects?.after ?? []),
            reads: effects?.reads ?? [])
        return change.script
    }
}

/// Part 1 locks the user's row. The lock keeps the guards about phone and user true until the
/// commit, because every change of either locks the user's row.
extension CloseScript {
    var lockUser: [BoundStatement] {
        (closing.device?.user ?? closing.code?.user ?? closing.approvedFor).map { [Locks.hold(user: .id($0))] } ?? []
    }
}

/// Part 2 ends the challenge, if it is still open and all on which the end relies is as it was
/// read. Everything later depends on the challenge's row.
extension CloseScript {
    var endChallenge: [BoundStatement] {
        if closing.life.state == .expired { return [end(expire)] }
        if let phone = closing.device { return [end(by: phone)] }
        if let code = closing.code { return [code.ends(closing, as: operation)] }
        return [end(closing.approvedFor == nil ? closeOpen : approveByWebsite)]
    }

    private func end(_ statement: Statement) -> BoundStatement {
        let life = closing.life
        return statement(
            state: .word(life.state), decision: .word(life.decision), reason: .word(life.reason),
            factor: .word(closing.factor), proof: .word(closing.proof), now: now, operation: .id(operation),
            challenge: challenge)
    }

    private func end(by phone: PhoneCredential) -> BoundStatement {
        let life = closing.life
        guard life.decision == .approve || life.reason == .wrongNumber || life.reason == .place else {
            return closeByPhone(
                state: .word(life.state), decision: .word(life.decision), reason: .word(life.reason),
                factor: .word(closing.factor), proof: .word(closing.proof), now: now, operation: .id(operation),
                device: .id(phone.id), receipt: .receipt(closing.receipt), uv: .word(closing.uv),
                placeCheck: .word(closing.place?.check),
                placeDistance: .integer((closing.place?.distance).map { Int64($0) }), attested: .null, assertion: .null,
                challenge: challenge, key: .blob(phone.key))
        }
        let relied = closing.posture?.relied
        return approveByPhone(
            state: .word(life.state), decision: .word(life.decision), reason: .word(life.reason),
            factor: .word(closing.factor), proof: .word(closing.proof), now: now, operation: .id(operation),
            device: .id(phone.id), receipt: .receipt(closing.receipt), uv: .word(closing.uv),
            placeCheck: .word(closing.place?.check),
            placeDistance: .integer((closing.place?.distance).map { Int64($0) }),
            attested: .text(closing.posture?.answer.facts), assertion: .text(closing.assertion),
            challenge: challenge, key: .blob(phone.key), failures: .integer(Int64(phone.failures)),
            binding: .id(relied?.binding), counter: .integer((relied?.counter).map { Int64($0) }),
            pinVersion: .integer((closing.pin?.version).map { Int64($0) }),
            pinFailures: .integer((closing.pin?.failures).map { Int64($0) }))
    }
}

/// The parts of statements that end a challenge.
enum ChallengeEnds {
    /// The columns that every end writes. The current factor stays if the end names none.
    static let end = """
        UPDATE challenge SET state = :state, decision = :decision, reason = :reason, factor = coalesce(:factor, factor),
        proof = :proof, decided_at = :now, operation = :operation
        """

    static let isUndecided = "id = :challenge AND decided_at IS NULL"

    /// The condition of all ends except an expiry.
    static let isOpen = "\(isUndecided) AND expires_at > :now"
}

private let expire = Statement("\(ChallengeEnds.end) WHERE \(ChallengeEnds.isUndecided) AND expires_at <= :now")

private let closeOpen = Statement("\(ChallengeEnds.end) WHERE \(ChallengeEnds.isOpen)")

/// Ends a challenge by the word of its website. The user must be active and not expired.
private let approveByWebsite = Statement(
    """
    \(ChallengeEnds.end) WHERE \(ChallengeEnds.isOpen)
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = challenge.user_id AND \(Guards.mayLogIn))
    """)

private let endByPhone =
    """
    \(ChallengeEnds.end), device_id = :device, receipt = :receipt, uv = :uv, place_check = :placeCheck,
    place_distance = :placeDistance, attested = :attested, assertion = :assertion WHERE \(ChallengeEnds.isOpen)
    """

private let closeByPhone = Statement(
    """
    \(endByPhone) AND EXISTS (SELECT 1 FROM device d
    WHERE d.id = :device AND d.thumbprint = :key AND d.state = 'active' AND d.user_id = challenge.user_id)
    """)

/// Ends a challenge by an approval of a phone, also by one with a wrong number or from a refused
/// place. The user must be active and not expired, and the phone's failure count must be as it was
/// judged. So must the phone's PIN and its count, and the phone's attestation and its counter, if
/// the approval relies on them. A denial has no such conditions.
private let approveByPhone = Statement(
    """
    \(endByPhone) AND EXISTS (SELECT 1 FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.thumbprint = :key AND d.state = 'active' AND d.user_id = challenge.user_id
    AND d.failures = :failures AND \(PINRows.isAsJudged) AND \(Guards.mayLogIn))
    AND \(AttestationRows.isAsRead)
    """)

/// Part 3 ends the unfinished steps. Those with another factor than the one that was answered led
/// to nothing.
extension CloseScript {
    var endSteps: [BoundStatement] {
        let state = closing.life.endOfStep
        let answered: Factor? = state == .answered ? closing.factor : nil
        let ended = endStep(
            factor: .word(answered), state: .word(state), others: .word(answered == nil ? state : .skipped), now: now,
            challenge: challenge, operation: .id(operation))
        guard let answered, closing.proof != nil else { return [ended] }
        return [
            ended, addStep(factor: .word(answered), now: now, challenge: challenge, operation: .id(operation)),
        ]
    }
}

extension ChallengeLife {
    /// The state that the end gives to the unfinished step.
    fileprivate var endOfStep: StepState {
        switch state {
        case .answered: .answered
        case .expired: .expired
        case .failed: reason == .wrongNumber || reason == .place ? .answered : .skipped
        case .asked, .sent, .cancelled: .skipped
        }
    }
}

private let endStep = Statement(
    """
    UPDATE step SET state = CASE WHEN factor = :factor THEN :state ELSE :others END, at = :now
    WHERE challenge_id = :challenge AND state IN ('queued', 'sent', 'seen') AND \(Guards.challengeWritten)
    """)

/// Adds a step if the factor of the answer had not begun or was already left. The reason `late`
/// distinguishes it, for example from a second push.
private let addStep = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at, reason)
    SELECT c.id, (SELECT coalesce(max(s.ordinal), 0) + 1 FROM step s WHERE s.challenge_id = c.id), :factor, 'answered',
    :now, CASE WHEN EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = c.id AND s.factor = :factor) THEN 'late' END
    FROM challenge c WHERE c.id = :challenge AND c.operation = :operation
    AND NOT EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = c.id AND s.state = 'answered')
    """)

/// Part 4 uses up the code, or updates the phone.
extension CloseScript {
    var useCode: [BoundStatement] { closing.code?.usedUp(closing, as: operation) ?? [] }

    var updatePhone: [BoundStatement] {
        guard let phone = closing.device else { return [] }
        let succeeded = closing.life.result == .success
        let seen = seePhone(
            now: now, successes: .bool(succeeded), failures: .bool(!succeeded), device: .id(phone.id),
            challenge: challenge, operation: .id(operation))
        guard closing.life.decision == .approve else { return [seen] }
        var updates = [seen]
        if phone.failures > 0 {
            updates.append(
                forgetFailures(device: .id(phone.id), challenge: challenge, operation: .id(operation)))
        }
        if let pin = closing.pin, pin.isRight, pin.failures > 0 {
            updates.append(PINRows.forgetFailures(of: phone.id, endedWith: challenge, as: operation))
        }
        return updates
    }
}

/// Part 4 also stores the counter of the phone's assertion.
extension CloseScript {
    var useAssertion: [BoundStatement] {
        guard closing.life.decision == .approve, let phone = closing.device, let next = closing.posture?.relied?.next
        else { return [] }
        return [
            AttestationRows.count(next, of: phone.id, endedWith: challenge, as: operation)
        ]
    }
}

/// Counts the answer of the phone. The script runs once for each operation, so each answer counts
/// once.
private let seePhone = Statement(
    """
    UPDATE device SET last_seen_at = :now, login_successes = login_successes + :successes,
    login_failures = login_failures + :failures WHERE id = :device AND \(Guards.challengeWritten)
    """)

/// Resets the failure count, but only if the challenge had a number. Without a number, an approval
/// does not show that the user does not guess.
private let forgetFailures = Statement(
    """
    UPDATE device SET failures = 0, failed_at = NULL WHERE id = :device AND EXISTS
    (SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.operation = :operation AND c.number IS NOT NULL)
    """)

/// Part 5 deletes the entries of the challenge, notifies the website of the end, and audits it.
extension CloseScript {
    var notify: [BoundStatement] {
        let life = closing.life
        return [
            dropEntries(challenge: challenge, operation: .id(operation)),
            LoginDecidedRows.insertLoginDecided(closing.challenge, at: closing.at, as: operation),
            auditEnd(
                operation: .id(operation), now: now, event: .text("\(closing.event)"),
                outcome: .text(life.decision?.rawValue ?? life.reason?.rawValue), challenge: challenge),
        ]
    }
}

private let dropEntries = Statement(
    """
    DELETE FROM outbox WHERE challenge_id = :challenge AND \(OutboxRows.exceptWebhooks) AND \(Guards.challengeWritten)
    """)

private let auditEnd = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome, proof)
    SELECT :operation, :now, :event, c.website_id, c.user_id, c.id, c.device_id, :outcome, c.proof
    FROM challenge c WHERE c.id = :challenge AND c.operation = :operation
    \(Audit.once)
    """)
