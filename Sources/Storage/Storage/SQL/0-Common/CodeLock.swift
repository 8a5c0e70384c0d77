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
        [
            auditLock(
                own: .id(own), now: .timestamp(wrong.at), event: .word(AccountEvent.codesLocked),
                challenge: .id(wrong.challenge), user: .id(wrong.user), operation: .id(operation)),
            dropCodes(user: .id(wrong.user), operation: .id(own)),
            giveUpCodes(now: .timestamp(wrong.at), user: .id(wrong.user), operation: .id(own)),
            CascadeSteps.makeDue(of: wrong.user, at: wrong.at, noted: own),
        ]
            + AccountEventRows.steps(
                .codesLocked, user: wrong.user, device: nil, challenge: wrong.challenge, at: wrong.at, as: operation,
                noted: own)
    }

    /// The rows that a lock writes, except the user's.
    var rows: [SignedRows] { AccountEventRows.rows(.codesLocked, as: operation) }
}

private let auditLock = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, proof)
    SELECT :own, :now, :event, u.website_id, u.id, :challenge, 'code' FROM user u
    WHERE u.id = :user AND u.codes_locked_at = :now AND \(Guards.audited)
    \(Audit.once)
    """)

private let dropCodes = Statement(
    """
    DELETE FROM outbox WHERE user_id = :user AND factor_id IS NOT NULL AND kind IN ('sms', 'mail')
    AND \(Guards.audited)
    """)

private let giveUpCodes = Statement(
    """
    UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
    SET /*M! step.state */ /*S! state */ = 'undeliverable', at = :now,
    /*M! step.reason */ /*S! reason */ = 'codes are locked'
    WHERE step.factor NOT IN ('push', 'pull') AND step.state IN ('queued', 'sent') AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */ c.user_id = :user AND c.decided_at IS NULL /*S! ) */
    AND \(Guards.audited)
    """)

/// The results of a lock.
extension CodeLock {
    var reads: [BoundStatement] {
        [
            Audit.happened(operation: .id(own)),
            openOfUser(user: .id(wrong.user), now: .timestamp(wrong.at)),
        ]
    }

    /// Reads whether the codes were locked. The first of the results belongs to the change itself.
    func hasLocked(_ rows: [Rows]) -> Bool { !rows[1].isEmpty }

    /// Reads the challenges that were open; none if the codes were not locked.
    func open(_ rows: [Rows]) throws(StoreFailure) -> [ChallengeID] {
        guard hasLocked(rows) else { return [] }
        var open: [ChallengeID] = []
        for row in rows[2] { open.append(try row.id("id")) }
        return open
    }
}

private let openOfUser = Statement(
    """
    SELECT id FROM challenge WHERE user_id = :user AND decided_at IS NULL AND expires_at > :now ORDER BY asked_at, id
    """)
