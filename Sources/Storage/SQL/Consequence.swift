import Domain
import Relay
import World

/// What an answer does to its user beside ending the challenge: a wrong number counts against its phone and may lock the
/// user, a report of fraud freezes it. Part of the script that ends the challenge, so that both happen or neither.
struct Consequence {
    private let kind: Announcement
    private let becomes: UserState
    private let reason: Reason
    private let phone: PhoneCredential
    private let closing: Closing
    private let operation: Operation
    /// The change of the user has a row of its own in the audit.
    private let own: OperationID

    /// Nil for an end that has none.
    init?(_ closing: Closing, _ operation: Operation) {
        guard let phone = closing.device else { return nil }
        if closing.life.decision == .fraud {
            (kind, becomes, reason) = (.userFrozen, .frozen, .frozen)
        } else if closing.life.reason == .wrongNumber {
            (kind, becomes, reason) = (.userLocked, .locked, .locked)
        } else {
            return nil
        }
        self.phone = phone
        self.closing = closing
        self.operation = operation
        own = operation.identifier(kind.rawValue)
    }

    var after: [Step] {
        let now = SQLValue.moment(closing.at)
        let mine: [SQLValue] = [.id(closing.challenge), .id(operation)]
        var steps: [Step] = []
        if becomes == .frozen {
            steps.append(Step(freeze, values: [.id(own), .id(phone.user)] + mine))
        } else {
            steps.append(Step(countFailure, values: [now, .id(phone.id)] + mine))
            let limit = SQLValue.integer(Int64(closing.guesses ?? Policy.guessLimits.upperBound))
            steps.append(Step(lock, values: [.id(own), .id(phone.user), .id(phone.id), limit] + mine))
        }
        let changed: [SQLValue] = [.id(phone.user), .id(own)]
        steps.append(
            Step(Locks.endOpen, values: [.word(reason), now, .id(operation), .id(phone.user), now] + changed))
        steps.append(Step(Locks.dropErrands, .id(phone.user), .id(operation)))
        steps.append(
            Step(
                auditUser,
                values: [.id(own), now, .word(kind), .id(closing.challenge), .id(phone.id), .word(closing.proof)]
                    + changed))
        return steps + News.steps(kind, user: phone.user, device: phone.id, as: operation, noted: own)
    }

    var reads: [Step] {
        [Step(Audit.happened, .id(own)), Step(othersEnded, .id(phone.user), .id(operation), .id(closing.challenge))]
    }

    /// The rows begin with that of the change itself.
    func came(of rows: [Rows]) throws(StoreFailure) -> Closed {
        var others: [ChallengeID] = []
        for row in rows[2] { others.append(try row.id(0)) }
        return Closed(became: rows[1].isEmpty ? nil : becomes, others: others)
    }
}

private let ended = " EXISTS (SELECT 1 FROM challenge c WHERE c.id = ? AND c.operation = ?)"

private let freeze = Statement(
    "UPDATE user SET state = 'frozen', operation = ? WHERE id = ? AND state <> 'frozen' AND" + ended)

private let countFailure = Statement(
    "UPDATE device SET failures = failures + 1, failed_at = ? WHERE id = ? AND" + ended)

private let lock = Statement(
    """
    UPDATE user SET state = 'locked', operation = ? WHERE id = ? AND state = 'active'
    AND EXISTS (SELECT 1 FROM device d WHERE d.id = ? AND d.failures >= ?) AND
    """ + ended)

private let othersEnded = Statement("SELECT id FROM challenge WHERE user_id = ? AND operation = ? AND id <> ?")

private let auditUser = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, ?, ?, NULL, ? FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)
