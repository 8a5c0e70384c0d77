import Domain
import Relay
import World

/// The statements that lock all codes of a user after too many wrong ones. They delete messages
/// with codes that were not sent yet, and make steps that wait for a code undeliverable. They
/// notify the website and the user. Signed approvals are not affected.
struct CodeLock {
    private let wrong: WrongCode
    private let operation: Operation
    /// The operation id of the lock's own audit row.
    private let own: OperationID

    init(_ wrong: WrongCode, _ operation: Operation) {
        self.wrong = wrong
        self.operation = operation
        own = operation.identifier(AccountEvent.codesLocked.rawValue)
    }

    /// The statements, which must follow those that count the wrong code.
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

    /// The rows that a lock writes. Counting alone changes nothing that is signed.
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
