import Domain
import Relay
import World

extension Store {
    public func unlock(
        _ user: UserID, from states: [UserState], by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(Locks.unlock(user, from: states, by: doer, at: now, as: operation))
    }
}

/// Statements that lock and unlock users.
public enum Locks {
    /// Activates a user in one of these states and sets the failure counts of the phones to zero.
    /// The answer is false if the user is in none of the states. It is also false if an operator
    /// locked the user and `doer` is not an operator. An operator's unlock also accepts the user's
    /// codes again and clears the wrong ones.
    public static func unlock(
        _ user: UserID, from states: [UserState], by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        // The statement has exactly two parameters for states.
        return Query(
            change: Change(
                "unlock", operation, rows: [.user(user).signed],
                [
                    BoundStatement(
                        activate, .id(operation), .id(user), .word(states.first), .word(states.last),
                        .bool(doer == .operator), .bool(doer == .operator))
                ] + unlocked(user, by: doer, at: now, as: operation)
                    + (doer == .operator ? CodeFailures.cleared(of: user, as: operation) : []))
        ) { rows in rows.happened }
    }

    /// The statements that follow after this change has made the user active.
    static func unlocked(_ user: UserID, by doer: ChangeAuthor, at now: Timestamp, as operation: Operation)
        -> [BoundStatement]
    {
        let mine: [SQLValue] = [.id(user), .id(operation)]
        return [
            BoundStatement(forgetFailures, values: [.id(user)] + mine),
            BoundStatement(auditUnlock, values: [.id(operation), .timestamp(now), .word(doer)] + mine),
        ]
    }

    /// Locks the user on behalf of an operator, until an operator unlocks the user. If the user is
    /// already locked or frozen for another reason, the lock becomes the operator's. This is
    /// audited as `user.taken` and nobody is notified, because they were notified of the first
    /// lock. The answer is false if an operator has already locked the user.
    public static func lock(_ user: UserID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        let mine: [SQLValue] = [.id(user), .id(operation)]
        let rows =
            [.user(user).lenient] + rows(ending: user, at: now, as: operation)
            + AccountEventRows.rows(.userLocked, as: operation)
        return Query(
            change: Change(
                "lock", operation, rows: rows,
                [
                    BoundStatement(hold, .id(user)),
                    BoundStatement(auditLock, .id(operation), .timestamp(now), .word(ChangeAuthor.operator), .id(user)),
                    BoundStatement(lockByHand, values: [.id(operation)] + mine),
                    BoundStatement(
                        endOpen,
                        values: [.word(Reason.locked), .timestamp(now), .id(operation), .id(user), .timestamp(now)]
                            + mine),
                    Steps.skip(of: user, at: now, by: operation),
                    BoundStatement(dropEntries, .id(user), .id(operation)),
                    LoginDecidedRows.insertLoginDecided(of: user, at: now, as: operation),
                    auditEnded(user, .locked, at: now, as: operation),
                ]
                    + AccountEventRows.steps(
                        .userLocked, user: user, device: nil, after: "user.locked", at: now, as: operation))
        ) { rows in rows.happened }
    }

    /// Locks the user's row first, as a login does. Two changes of one user then run one after the
    /// other and do not conflict.
    static let hold = Statement("UPDATE user SET state = state WHERE id = :user")

    /// Fails the open challenges of a user whom this change locked or froze. Expired challenges
    /// keep the result `expired`, which was already reported.
    static let endOpen = Statement(
        """
        UPDATE challenge SET state = 'failed', reason = ?, decided_at = ?, operation = ?
        WHERE user_id = ? AND decided_at IS NULL AND expires_at > ? AND EXISTS
        (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ? AND u.state <> 'active')
        """)

    /// The challenges that `endOpen` ends at that moment, and their `login.decided` entries.
    static func rows(ending user: UserID, at now: Timestamp, as operation: Operation) -> [SignedRows] {
        [.endedChallenges(of: user, at: now).lenient, LoginDecidedRows.rows(of: user, at: now, as: operation)]
    }

    /// Audits the challenges that `endOpen` ended.
    static func auditEnded(_ user: UserID, _ reason: Reason, at now: Timestamp, as operation: Operation)
        -> BoundStatement
    {
        BoundStatement(auditEndedOf, .timestamp(now), .id(user), .id(operation), .word(reason))
    }

    static let dropEntries = Statement(
        """
        DELETE /*M! o */ FROM outbox
        /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
        /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
        c.user_id = ? AND c.operation = ? /*S! ) */ AND
        """ + OutboxRows.exceptWebhooks)
}

/// Locks the user, or takes over a freeze. A freeze after a fraud report stays a freeze.
private let lockByHand = Statement(
    """
    UPDATE user SET state = CASE state WHEN 'frozen' THEN state ELSE 'locked' END, stopped_by = 'operator', operation = ?
    WHERE id = ? AND coalesce(stopped_by, '') <> 'operator' AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)

private let auditEndedOf = Statement(
    Audit.ended + "c.user_id = ? AND c.operation = ? AND c.reason = ?" + Audit.once)

/// Audits the lock. The statement must precede the lock, because the user's former state determines
/// the event.
private let auditLock = Statement(
    Audit.columns + """
         SELECT ?, ?, CASE u.state WHEN 'active' THEN 'user.locked' ELSE 'user.taken' END, u.website_id, u.id, NULL, NULL,
        ?, NULL FROM user u WHERE u.id = ? AND coalesce(u.stopped_by, '') <> 'operator'
        """ + Audit.once)

private let activate = Statement(
    """
    UPDATE user SET state = 'active', stopped_by = NULL, operation = ?
    WHERE id = ? AND (state IN (?, ?) OR ? = 1 AND state = 'active' AND (code_failures > 0 OR codes_locked_at IS NOT NULL))
    AND (? = 1 OR coalesce(stopped_by, '') <> 'operator')
    """)

private let forgetFailures = Statement(
    """
    UPDATE device SET failures = 0, failed_at = NULL
    WHERE user_id = ? AND failures > 0 AND EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)
    """)

private let auditUnlock = Statement(
    Audit.columns + """
         SELECT ?, ?, 'user.unlocked', u.website_id, u.id, NULL, NULL, ?, NULL
        FROM user u WHERE u.id = ? AND u.operation = ?
        """ + Audit.once)
