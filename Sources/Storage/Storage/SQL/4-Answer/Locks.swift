import Domain
import Relay
import World

extension Store {
    public func unlock(
        _ user: UserID, from states: [UserState], lifting lifted: ChangedValues = ChangedValues(),
        by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(Locks.unlock(user, from: states, lifting: lifted, by: doer, at: now, as: operation))
    }
}

/// Statements that lock and unlock users.
public enum Locks {
    /// Locks the user's row first, as a login does. Two changes of one user then run one after the
    /// other and do not conflict.
    static let hold = Statement("UPDATE user SET state = state WHERE id = :user")
}

extension Locks {
    /// Activates a user in one of these states and sets the failure counts of the phones to zero.
    /// The answer is false if the user is in none of the states. It is also false if an operator
    /// locked the user and `doer` is not an operator. An operator's unlock also accepts the user's
    /// codes again and clears the wrong ones.
    ///
    /// - Parameter lifted: the values before and after, for the audit.
    public static func unlock(
        _ user: UserID, from states: [UserState], lifting lifted: ChangedValues = ChangedValues(),
        by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let activated = activate.bound(
            ["operation": .id(operation), "user": .id(user), "isByOperator": .bool(doer == .operator)],
            lists: ["state": states.map { .word($0) }])
        return Query(
            change: Change(
                "unlock", operation, rows: [.user(user).signed],
                [activated] + unlocked(user, lifting: lifted, by: doer, at: now, as: operation)
                    + (doer == .operator ? CodeFailures.cleared(of: user, as: operation) : []))
        ) { rows in rows.happened }
    }

    /// The statement has exactly two parameters for states.
    private static let activate = Statement(
        """
        UPDATE user SET state = 'active', stopped_by = NULL, operation = :operation
        WHERE id = :user AND (state IN (:state1, :state2)
        OR :isByOperator = 1 AND state = 'active' AND (code_failures > 0 OR codes_locked_at IS NOT NULL))
        AND (:isByOperator = 1 OR coalesce(stopped_by, '') <> 'operator')
        """)

    /// The statements that follow after this change has made the user active.
    static func unlocked(
        _ user: UserID, lifting lifted: ChangedValues, by doer: ChangeAuthor, at now: Timestamp,
        as operation: Operation
    ) -> [BoundStatement] {
        [
            forgetFailures(user: .id(user), operation: .id(operation)),
            auditUnlock(
                operation: .id(operation), now: .timestamp(now), author: .word(doer), changes: .text(lifted.text),
                user: .id(user)),
        ]
    }

    private static let forgetFailures = Statement(
        """
        UPDATE device SET failures = 0, failed_at = NULL WHERE user_id = :user AND failures > 0 AND \(Guards.userMarked)
        """)

    private static let auditUnlock = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'user.unlocked', u.website_id, u.id, :author
        FROM user u WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)
}

extension Locks {
    /// Locks the user on behalf of an operator, until an operator unlocks the user. If the user is
    /// already locked or frozen for another reason, the lock becomes the operator's. This is
    /// audited as `user.taken` and nobody is notified, because they were notified of the first
    /// lock. The answer is false if an operator has already locked the user.
    public static func lock(_ user: UserID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        let rows =
            [.user(user).lenient] + rows(ending: user, at: now, as: operation)
            + AccountEventRows.rows(.userLocked, as: operation)
        return Query(
            change: Change(
                "lock", operation, rows: rows,
                [
                    hold(user: .id(user)),
                    auditLock(
                        operation: .id(operation), now: .timestamp(now), author: .word(ChangeAuthor.operator),
                        user: .id(user)),
                    lockByHand(operation: .id(operation), user: .id(user)),
                    endOpen(
                        reason: .word(Reason.locked), now: .timestamp(now), operation: .id(operation), user: .id(user),
                        own: .id(operation)),
                    Steps.skip(of: user, at: now, by: operation),
                    dropEntries(user: .id(user), operation: .id(operation)),
                    LoginDecidedRows.insertLoginDecided(of: user, at: now, as: operation),
                    auditEnded(user, .locked, at: now, as: operation),
                ]
                    + AccountEventRows.steps(
                        .userLocked, user: user, device: nil, after: "user.locked", at: now, as: operation))
        ) { rows in rows.happened }
    }

    /// Audits the lock. The statement must precede the lock, because the user's former state
    /// determines the event.
    private static let auditLock = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, CASE u.state WHEN 'active' THEN 'user.locked' ELSE 'user.taken' END, u.website_id, u.id,
        :author FROM user u WHERE u.id = :user AND coalesce(u.stopped_by, '') <> 'operator'
        \(Audit.once)
        """)

    /// Locks the user, or takes over a freeze. A freeze after a fraud report stays a freeze. A
    /// disabled user stays disabled, and is locked on return. MariaDB assigns from left to right, so
    /// the prior state comes first.
    private static let lockByHand = Statement(
        """
        UPDATE user SET prior_state =
        CASE state WHEN 'disabled' THEN CASE prior_state WHEN 'frozen' THEN prior_state ELSE 'locked' END END,
        state = CASE state WHEN 'frozen' THEN state WHEN 'disabled' THEN state ELSE 'locked' END, stopped_by = 'operator',
        operation = :operation
        WHERE id = :user AND coalesce(stopped_by, '') <> 'operator' AND \(Guards.audited)
        """)

    /// Fails the open challenges of a user whom this change locked or froze. Expired challenges
    /// keep the result `expired`, which was already reported. The user's row has the mark `own`.
    static let endOpen = Statement(
        """
        UPDATE challenge SET state = 'failed', reason = :reason, decided_at = :now, operation = :operation
        WHERE user_id = :user AND decided_at IS NULL AND expires_at > :now AND EXISTS
        (SELECT 1 FROM user u WHERE u.id = :user AND u.operation = :own AND u.state <> 'active')
        """)

    static let dropEntries = Statement(
        """
        DELETE /*M! o */ FROM outbox
        /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
        /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
        c.user_id = :user AND c.operation = :operation /*S! ) */ AND \(OutboxRows.exceptWebhooks)
        """)

    /// The challenges that `endOpen` ends at that moment, and their `login.decided` entries.
    static func rows(ending user: UserID, at now: Timestamp, as operation: Operation) -> [SignedRows] {
        [.endedChallenges(of: user, at: now).lenient, LoginDecidedRows.rows(of: user, at: now, as: operation)]
    }

    /// Audits the challenges that `endOpen` ended.
    static func auditEnded(_ user: UserID, _ reason: Reason, at now: Timestamp, as operation: Operation)
        -> BoundStatement
    {
        auditEndedOf(now: .timestamp(now), user: .id(user), operation: .id(operation), reason: .word(reason))
    }

    private static let auditEndedOf = Statement.audit(
        """
        \(Audit.endedChallenges) c.user_id = :user AND c.operation = :operation AND c.reason = :reason
        \(Audit.once)
        """)
}
