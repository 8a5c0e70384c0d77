import Domain
import Relay
import World

/// The part of counting a wrong code that locks all codes of its user: messages with codes that
/// were not sent yet are dropped, steps that wait for a code come to nothing, and website and user
/// are told. Signed approvals are not touched.
struct CodeLock {
    private let wrong: WrongCode
    private let operation: Operation
    /// The lock has an audit row of its own.
    private let own: OperationID

    init(_ wrong: WrongCode, _ operation: Operation) {
        self.wrong = wrong
        self.operation = operation
        own = operation.identifier(AccountEvent.codesLocked.rawValue)
    }

    /// Behind the steps that count.
    var writes: [BoundStatement] {
        let user = SQLValue.id(wrong.user)
        let now = SQLValue.timestamp(wrong.at)
        return [
            BoundStatement(
                auditLock, .id(own), now, .word(AccountEvent.codesLocked), .id(wrong.challenge), user, now,
                .id(operation)),
            BoundStatement(dropCodes, user, .id(own)),
            BoundStatement(giveUpCodes, now, user, .id(own)),
            CascadeSteps.makeDue(of: wrong.user, at: wrong.at, noted: own),
        ]
            + AccountEventRows.steps(
                .codesLocked, user: wrong.user, device: nil, challenge: wrong.challenge, at: wrong.at, as: operation,
                noted: own)
    }

    /// Counting alone changes nothing that is signed.
    var rows: [SignedRows] { [.user(wrong.user).lenient] + AccountEventRows.rows(.codesLocked, as: operation) }

    var reads: [BoundStatement] {
        [BoundStatement(Audit.happened, .id(own)), BoundStatement(openOfUser, .id(wrong.user), .timestamp(wrong.at))]
    }
}

private let noted = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let auditLock = Statement(
    Audit.columns + """
         SELECT ?, ?, ?, u.website_id, u.id, ?, NULL, NULL, 'code' FROM user u
        WHERE u.id = ? AND u.codes_locked_at = ? AND
        """ + noted + Audit.once)

private let dropCodes = Statement(
    "DELETE FROM outbox WHERE user_id = ? AND factor_id IS NOT NULL AND kind IN ('sms', 'mail') AND" + noted)

private let giveUpCodes = Statement(
    """
    UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
    SET /*M! step.state */ /*S! state */ = 'undeliverable', at = ?,
    /*M! step.reason */ /*S! reason */ = 'codes are locked'
    WHERE step.factor NOT IN ('push', 'pull') AND step.state IN ('queued', 'sent') AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */ c.user_id = ? AND c.decided_at IS NULL /*S! ) */ AND
    """ + noted)

private let openOfUser = Statement(
    "SELECT id FROM challenge WHERE user_id = ? AND decided_at IS NULL AND expires_at > ? ORDER BY asked_at, id")
