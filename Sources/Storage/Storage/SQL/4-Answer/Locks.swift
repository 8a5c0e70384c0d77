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

/// Who is not asked, and since when again.
public enum Locks {
    /// Makes a user in one of these states active, with no wrong numbers; false when it was in none
    /// of them, or when an operator has locked it and the doer is none. An operator also takes the
    /// user's codes again, and forgets wrong ones.
    public static func unlock(
        _ user: UserID, from states: [UserState], by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        // There are two places for states in the statement.
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

    /// What follows once this change has made the user active.
    static func unlocked(_ user: UserID, by doer: ChangeAuthor, at now: Timestamp, as operation: Operation)
        -> [BoundStatement]
    {
        let mine: [SQLValue] = [.id(user), .id(operation)]
        return [
            BoundStatement(forgetFailures, values: [.id(user)] + mine),
            BoundStatement(auditUnlock, values: [.id(operation), .timestamp(now), .word(doer)] + mine),
        ]
    }

    /// By an operator: nobody asks this user until an operator unlocks it. A lock or freeze of the user's own making
    /// becomes the operator's: it is noted as `user.taken`, and announced to nobody, who were told of it. False when it is that
    /// already.
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

    /// Locks the user's row first, as a login does: two changes of one user come one after the other, and never into each
    /// other's way.
    static let hold = Statement("UPDATE user SET state = state WHERE id = ?")

    /// Of a user whom this very change locked or froze. What has expired was told so, and stays what it was told to be.
    static let endOpen = Statement(
        """
        UPDATE challenge SET state = 'failed', reason = ?, decided_at = ?, operation = ?
        WHERE user_id = ? AND decided_at IS NULL AND expires_at > ? AND EXISTS
        (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ? AND u.state <> 'active')
        """)

    /// The challenges that `endOpen` ends at that moment, and what websites are told of them.
    static func rows(ending user: UserID, at now: Timestamp, as operation: Operation) -> [SignedRows] {
        [.endedChallenges(of: user, at: now).lenient, LoginDecidedRows.rows(of: user, at: now, as: operation)]
    }

    /// What `endOpen` ended.
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

/// What a user called fraud stays a freeze.
private let lockByHand = Statement(
    """
    UPDATE user SET state = CASE state WHEN 'frozen' THEN state ELSE 'locked' END, stopped_by = 'operator', operation = ?
    WHERE id = ? AND coalesce(stopped_by, '') <> 'operator' AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    """)

private let auditEndedOf = Statement(
    Audit.ended + "c.user_id = ? AND c.operation = ? AND c.reason = ?" + Audit.once)

/// In front of the lock: what the user was says what it is called.
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
