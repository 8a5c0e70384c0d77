import Domain
import Relay
import World

extension Store {
    public func freeze(_ report: LateFraud, as operation: Operation) async throws(StoreFailure) -> ChallengeEndResult? {
        let consequence = AnswerEffects(report, operation)
        let writes = [Locks.hold(user: .id(report.user)), audited(report, operation)]
        let change = Change(
            "fraud", operation, rows: [.user(report.user).lenient] + consequence.rows, writes + consequence.after,
            reads: consequence.reads + [isFrozen(user: .id(report.user))])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard rows.happened, report.phone != nil || rows.last?.isEmpty == false else { return nil }
                return try consequence.came(of: rows)
            })
    }

    private func audited(_ report: LateFraud, _ operation: Operation) -> BoundStatement {
        guard let phone = report.phone else {
            return auditReportByLink(
                operation: .id(operation), now: .timestamp(report.at), user: .id(report.user),
                challenge: .id(report.challenge))
        }
        return auditReport(
            operation: .id(operation), now: .timestamp(report.at), device: .id(phone.id), key: .blob(phone.key),
            user: .id(report.user), challenge: .id(report.challenge))
    }
}

/// Audits a report. The row is written even if the user is already frozen, so that a repeated
/// report is recognized.
private let auditReport = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome, proof)
    SELECT :operation, :now, 'fraud.reported', u.website_id, u.id, c.id, d.id, coalesce(c.reason, c.decision), 'signed'
    FROM device d JOIN user u ON u.id = d.user_id JOIN challenge c ON c.user_id = u.id
    WHERE d.id = :device AND d.thumbprint = :key AND d.state = 'active' AND u.id = :user AND c.id = :challenge
    AND c.decided_at IS NOT NULL AND coalesce(c.decision, '') <> 'fraud'
    \(Audit.once)
    """)

/// Audits a report by the link to an account. The challenge may be open.
private let auditReportByLink = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome, proof)
    SELECT :operation, :now, 'fraud.reported', u.website_id, u.id, c.id, coalesce(c.reason, c.decision), 'link'
    FROM user u JOIN challenge c ON c.user_id = u.id
    WHERE u.id = :user AND c.id = :challenge AND coalesce(c.decision, '') <> 'fraud'
    \(Audit.once)
    """)

private let isFrozen = Statement(
    "SELECT 1 FROM user WHERE id = :user AND (state = 'frozen' OR prior_state = 'frozen')")

/// Effects of an answer on its user, besides the end of the challenge. A wrong number counts
/// against its phone and may lock the user; a fraud report freezes the user. The statements belong
/// to the script that ends the challenge, so that either all of it happens or nothing.
struct AnswerEffects {
    private let kind: AccountEvent
    private let becomes: UserState
    private let reason: Reason
    private let user: UserID
    /// The phone that answered; nil for a report by a link.
    private let device: DeviceID?
    private let challenge: ChallengeID?
    /// The challenge that the answer itself ended.
    private let ended: ChallengeID?
    /// The challenge that caused the change. The website is notified of its end before it is
    /// notified of the change.
    private let cause: ChallengeID?
    /// The proof in the audit: that of the answer, or `link`.
    private let proof: String?
    private let at: Timestamp
    private let operation: Operation
    /// The statements that change the user.
    private let change: [BoundStatement]
    /// The id of the change's own audit row.
    private let own: OperationID
}

/// The change of the user.
extension AnswerEffects {
    /// Creates the effects of an answer; nil if it has none.
    init?(_ closing: ChallengeEnd, _ operation: Operation) {
        guard let phone = closing.device else { return nil }
        if closing.life.decision == .fraud {
            (kind, becomes, reason) = (.userFrozen, .frozen, .frozen)
        } else if closing.life.reason == .wrongNumber {
            (kind, becomes, reason) = (.userLocked, .locked, .locked)
        } else {
            return nil
        }
        user = phone.user
        device = phone.id
        challenge = closing.challenge
        cause = challenge
        ended = challenge
        proof = closing.proof?.rawValue
        at = closing.at
        self.operation = operation
        own = operation.identifier(kind.rawValue)
        let answered = SQLValue.id(closing.challenge)
        if becomes == .frozen {
            change = [freeze(own: .id(own), user: .id(user), challenge: answered, operation: .id(operation))]
        } else {
            let limit = closing.guesses ?? Policy.guessLimits.upperBound
            change = [
                countFailure(
                    now: .timestamp(at), device: .id(device), challenge: answered, operation: .id(operation)),
                lock(
                    own: .id(own), user: .id(user), device: .id(device), limit: .integer(Int64(limit)),
                    challenge: answered, operation: .id(operation)),
            ]
        }
    }

    /// Creates the effects of a fraud report that answers no challenge.
    init(_ report: LateFraud, _ operation: Operation) {
        (kind, becomes, reason) = (.userFrozen, .frozen, .frozen)
        user = report.user
        device = report.phone?.id
        challenge = report.challenge
        cause = challenge
        ended = nil
        proof = report.phone == nil ? "link" : Proof.signed.rawValue
        at = report.at
        self.operation = operation
        own = operation.identifier(kind.rawValue)
        change = [freezeByReport(own: .id(own), user: .id(user), operation: .id(operation))]
    }
}

/// Freezes the user. If an operator has locked the user, only an operator can unlock the user. A
/// disabled user stays disabled, and is frozen on return. MariaDB assigns from left to right, so
/// the prior state comes first.
private let frozen = """
    UPDATE user SET prior_state = CASE state WHEN 'disabled' THEN 'frozen' END,
    state = CASE state WHEN 'disabled' THEN state ELSE 'frozen' END, operation = :own,
    stopped_by = CASE stopped_by WHEN 'operator' THEN stopped_by ELSE 'phone' END
    WHERE id = :user AND state <> 'frozen' AND coalesce(prior_state, '') <> 'frozen' AND
    """

private let freeze = Statement("\(frozen) \(Guards.challengeWritten)")

private let freezeByReport = Statement("\(frozen) \(Guards.audited)")

private let countFailure = Statement(
    """
    UPDATE device SET failures = failures + 1, failed_at = :now WHERE id = :device AND \(Guards.challengeWritten)
    """)

private let lock = Statement(
    """
    UPDATE user SET state = 'locked', stopped_by = 'phone', operation = :own WHERE id = :user AND state = 'active'
    AND EXISTS (SELECT 1 FROM device d WHERE d.id = :device AND d.failures >= :limit) AND \(Guards.challengeWritten)
    """)

/// The consequences of the change.
extension AnswerEffects {
    var after: [BoundStatement] {
        let now = SQLValue.timestamp(at)
        var writes = change
        writes += [
            Locks.endOpen(reason: .word(reason), now: now, operation: .id(operation), user: .id(user), own: .id(own)),
            Steps.skip(of: user, at: at, by: operation),
            Locks.dropEntries(user: .id(user), operation: .id(operation)),
            LoginDecidedRows.insertLoginDecided(of: user, at: at, as: operation),
            Locks.auditEnded(user, reason, at: at, as: operation),
            auditUser(
                own: .id(own), now: now, event: .word(kind), challenge: .id(challenge), device: .id(device),
                proof: .text(proof), user: .id(user)),
        ]
        // Somebody who tricked the user into an approval, or the help desk into a code, must not be
        // able to use it after the user is unlocked.
        if becomes == .frozen {
            writes += UnusedApprovals.ended(
                of: user, but: device, because: .fraud, at: at, as: operation, noted: own)
            writes += TemporaryCodes.ended(of: user, because: .fraud, at: at, noted: own, as: operation)
        }
        return writes
            + AccountEventRows.steps(
                kind, user: user, device: device, challenge: cause, at: at, as: operation, noted: own)
    }

    /// The rows that `after` writes, except the user's. It takes rights away from all of them,
    /// genuine or not.
    var rows: [SignedRows] {
        Locks.rows(ending: user, at: at, as: operation)
            + (becomes == .frozen ? UnusedApprovals.rows(of: user, at: at, as: operation) : [])
            + AccountEventRows.rows(kind, as: operation)
    }
}

private let auditUser = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, proof)
    SELECT :own, :now, :event, u.website_id, u.id, :challenge, :device, :proof FROM user u
    WHERE u.id = :user AND u.operation = :own
    \(Audit.once)
    """)

/// The results of the change.
extension AnswerEffects {
    var reads: [BoundStatement] {
        [
            happenedNow(own: .id(own), now: .timestamp(at)),
            othersEnded(user: .id(user), operation: .id(operation), ended: .id(ended)),
        ]
    }

    /// Reads the results, of which the first belongs to the change itself. If the change happened
    /// in an earlier run, the result reports nothing new.
    func came(of rows: [Rows]) throws(StoreFailure) -> ChallengeEndResult {
        guard !rows[1].isEmpty else { return ChallengeEndResult(became: nil, others: []) }
        var others: [ChallengeID] = []
        for row in rows[2] { others.append(try row.id("id")) }
        return ChallengeEndResult(became: becomes, others: others)
    }
}

private let happenedNow = Statement("SELECT 1 FROM audit WHERE operation = :own AND at = :now")

/// Finds the other challenges that the change ended. If the answer itself ended none, these are
/// all.
private let othersEnded = Statement(
    """
    SELECT id FROM challenge WHERE user_id = :user AND operation = :operation AND id <> coalesce(:ended, '')
    """)
