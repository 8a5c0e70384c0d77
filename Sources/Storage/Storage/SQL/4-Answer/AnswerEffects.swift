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

/// What an answer does to its user beside ending the challenge: a wrong number counts against its phone and may lock the
/// user, a report of fraud freezes it. Part of the script that ends the challenge, so that both happen or neither.
struct AnswerEffects {
    private let kind: AccountEvent
    private let becomes: UserState
    private let reason: Reason
    private let user: UserID
    /// The phone whose answer it was.
    private let device: DeviceID
    private let challenge: ChallengeID?
    /// With which it began: whoever is told of its end is told of that before.
    private let cause: ChallengeID?
    private let proof: Proof?
    private let at: Timestamp
    private let operation: Operation
    /// By which the user becomes so.
    private let change: [BoundStatement]
    /// The change of the user has a row of its own in the audit.
    private let own: OperationID

    /// Nil for an end that has none.
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

    /// Of a report that ends no challenge.
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
        // Whoever tricked the user into an approval must not come back with it once the user is unlocked.
        if becomes == .frozen { steps += UnusedApprovals.ended(of: user, but: device, by: .id(own)) }
        return steps
            + AccountEventRows.steps(
                kind, user: user, device: device, challenge: cause, at: at, as: operation, noted: own)
    }

    /// The rows that `after` writes, beside the user's. It takes away from whatever it finds.
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

    /// The rows begin with that of the change itself. What came of it at an earlier time is nothing new.
    func came(of rows: [Rows]) throws(StoreFailure) -> ChallengeEndResult {
        guard !rows[1].isEmpty else { return ChallengeEndResult(became: nil, others: []) }
        var others: [ChallengeID] = []
        for row in rows[2] { others.append(try row.id(0)) }
        return ChallengeEndResult(became: becomes, others: others)
    }
}

private let ended = " EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.operation = ?)"

/// Who was locked by an operator stays the operator's to let in again.
private let frozen = """
    UPDATE user SET state = 'frozen', operation = ?,
    stopped_by = CASE stopped_by WHEN 'operator' THEN stopped_by ELSE 'phone' END WHERE id = ? AND state <> 'frozen' AND
    """

private let freeze = Statement(frozen + ended)

private let freezeByReport = Statement(frozen + " EXISTS (SELECT 1 FROM audit WHERE operation = ?)")

/// Also where the user is frozen already: it was heard, and is not heard again.
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

/// Of a change that ends none of its own these are all.
private let othersEnded = Statement(
    "SELECT id FROM challenge WHERE user_id = ? AND operation = ? AND id <> coalesce(?, '')")

private let auditUser = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, ?, ?, NULL, ? FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)
