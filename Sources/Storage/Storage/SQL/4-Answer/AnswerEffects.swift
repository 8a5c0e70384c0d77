import Domain
import Relay
import World

extension Store {
    public func freeze(_ report: LateFraud, as operation: Operation) async throws(StoreFailure) -> ChallengeEndResult? {
        let phone = report.phone
        let consequence = AnswerEffects(report, operation)
        let writes = [
            BoundStatement(Locks.hold, .id(phone.user)),
            BoundStatement(
                auditReport, .id(operation), .timestamp(report.at), .id(phone.id), .blob(phone.key), .id(phone.user),
                .id(report.challenge)),
        ]
        let change = Change(
            "fraud", operation, rows: [.user(phone.user).lenient] + consequence.rows, writes + consequence.after,
            reads: consequence.reads)
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                rows.happened ? try consequence.came(of: rows) : nil
            })
    }
}

/// Effects of an answer on its user, besides the end of the challenge. A wrong number counts
/// against its phone and may lock the user; a fraud report freezes the user. The statements belong
/// to the script that ends the challenge, so that either all of it happens or nothing.
struct AnswerEffects {
    private let kind: AccountEvent
    private let becomes: UserState
    private let reason: Reason
    private let user: UserID
    /// The phone that answered.
    private let device: DeviceID
    private let challenge: ChallengeID?
    /// The challenge that caused the change. The website is notified of its end before it is
    /// notified of the change.
    private let cause: ChallengeID?
    private let proof: Proof?
    private let at: Timestamp
    private let operation: Operation
    /// The statements that change the user.
    private let change: [BoundStatement]
    /// The id of the change's own audit row.
    private let own: OperationID

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
        proof = closing.proof
        at = closing.at
        self.operation = operation
        own = operation.identifier(kind.rawValue)
        let mine: [SQLValue] = [.id(closing.challenge), .id(operation)]
        if becomes == .frozen {
            change = [BoundStatement(freeze, values: [.id(own), .id(phone.user)] + mine)]
        } else {
            let limit = SQLValue.integer(Int64(closing.guesses ?? Policy.guessLimits.upperBound))
            change = [
                BoundStatement(countFailure, values: [.timestamp(at), .id(phone.id)] + mine),
                BoundStatement(lock, values: [.id(own), .id(phone.user), .id(phone.id), limit] + mine),
            ]
        }
    }

    /// Creates the effects of a fraud report that ends no challenge.
    init(_ report: LateFraud, _ operation: Operation) {
        (kind, becomes, reason) = (.userFrozen, .frozen, .frozen)
        user = report.phone.user
        device = report.phone.id
        challenge = report.challenge
        cause = challenge
        proof = .signed
        at = report.at
        self.operation = operation
        own = operation.identifier(kind.rawValue)
        change = [BoundStatement(freezeByReport, .id(own), .id(user), .id(operation))]
    }

    var after: [BoundStatement] {
        let now = SQLValue.timestamp(at)
        var steps = change
        let changed: [SQLValue] = [.id(user), .id(own)]
        steps.append(
            BoundStatement(Locks.endOpen, values: [.word(reason), now, .id(operation), .id(user), now] + changed))
        steps.append(Steps.skip(of: user, at: at, by: operation))
        steps.append(BoundStatement(Locks.dropEntries, .id(user), .id(operation)))
        steps.append(LoginDecidedRows.insertLoginDecided(of: user, at: at, as: operation))
        steps.append(Locks.auditEnded(user, reason, at: at, as: operation))
        steps.append(
            BoundStatement(
                auditUser,
                values: [.id(own), now, .word(kind), .id(challenge), .id(device), .word(proof)] + changed))
        // Somebody who tricked the user into an approval must not be able to use it after the user
        // is unlocked.
        if becomes == .frozen { steps += UnusedApprovals.ended(of: user, but: device, by: .id(own)) }
        return steps
            + AccountEventRows.steps(
                kind, user: user, device: device, challenge: cause, at: at, as: operation, noted: own)
    }

    /// The rows that `after` writes, except the user's. It takes rights away from all of them,
    /// genuine or not.
    var rows: [SignedRows] {
        Locks.rows(ending: user, at: at, as: operation)
            + (becomes == .frozen ? UnusedApprovals.rows(of: user) : []) + AccountEventRows.rows(kind, as: operation)
    }

    var reads: [BoundStatement] {
        [
            BoundStatement(happenedNow, .id(own), .timestamp(at)),
            BoundStatement(othersEnded, .id(user), .id(operation), .id(challenge)),
        ]
    }

    /// Reads the results, of which the first belongs to the change itself. If the change happened
    /// in an earlier run, the result reports nothing new.
    func came(of rows: [Rows]) throws(StoreFailure) -> ChallengeEndResult {
        guard !rows[1].isEmpty else { return ChallengeEndResult(became: nil, others: []) }
        var others: [ChallengeID] = []
        for row in rows[2] { others.append(try row.id(0)) }
        return ChallengeEndResult(became: becomes, others: others)
    }
}

private let ended = " EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.operation = ?)"

/// Freezes the user. If an operator has locked the user, only an operator can unlock the user.
private let frozen = """
    UPDATE user SET state = 'frozen', operation = ?,
    stopped_by = CASE stopped_by WHEN 'operator' THEN stopped_by ELSE 'phone' END WHERE id = ? AND state <> 'frozen' AND
    """

private let freeze = Statement(frozen + ended)

private let freezeByReport = Statement(frozen + " EXISTS (SELECT 1 FROM audit WHERE operation = ?)")

/// Audits a report. The row is written even if the user is already frozen, so that a repeated
/// report is recognized.
private let auditReport = Statement(
    Audit.columns + """
         SELECT ?, ?, 'fraud.reported', u.website_id, u.id, c.id, d.id, coalesce(c.reason, c.decision), 'signed'
        FROM device d JOIN user u ON u.id = d.user_id JOIN challenge c ON c.user_id = u.id
        WHERE d.id = ? AND d.thumbprint = ? AND d.state = 'active' AND u.id = ? AND c.id = ?
        AND c.decided_at IS NOT NULL AND coalesce(c.decision, '') <> 'fraud'
        """ + Audit.once)

private let happenedNow = Statement("SELECT 1 FROM audit WHERE operation = ? AND at = ?")

private let countFailure = Statement(
    "UPDATE device SET failures = failures + 1, failed_at = ? WHERE id = ? AND" + ended)

private let lock = Statement(
    """
    UPDATE user SET state = 'locked', stopped_by = 'phone', operation = ? WHERE id = ? AND state = 'active'
    AND EXISTS (SELECT 1 FROM device d WHERE d.id = ? AND d.failures >= ?) AND
    """ + ended)

/// Finds the other challenges that the change ended. If the report itself ended none, these are
/// all.
private let othersEnded = Statement(
    "SELECT id FROM challenge WHERE user_id = ? AND operation = ? AND id <> coalesce(?, '')")

private let auditUser = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, ?, ?, NULL, ? FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)
