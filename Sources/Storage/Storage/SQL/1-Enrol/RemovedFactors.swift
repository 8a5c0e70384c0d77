import Domain
import Relay
import World

/// Statements that remove factors and the codes sent with them.
extension Factors {
    /// Deletes the factor of that kind with its codes. It also ends unused approvals, because
    /// nobody knows with which factor they were given. The answer is false if there is no factor of
    /// that kind.
    public static func drop(
        _ kind: Factor, of user: UserID, by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        var writes =
            [
                Locks.hold(user: .id(user)),
                auditDropped(
                    operation: .id(operation), now: .timestamp(now), kind: .word(kind), user: .id(user)),
            ] + dropped(kind, of: user, at: now, as: operation)
        if kind == .recovery { writes.append(RecoveryRows.dropped(user, as: operation)) }
        // A factor can be removed even if its rows are not genuine. The user's row comes first,
        // because other changes of the user wait for it.
        return Query(
            change: Change(
                "drop", operation, rows: [.user(user).lenient] + UnusedApprovals.rows(of: user, at: now, as: operation),
                writes + UnusedApprovals.ended(of: user, but: nil, because: .factor, at: now, as: operation))
        ) { rows in rows.happened }
    }

    private static let auditDropped = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'factor.dropped', u.website_id, u.id, :kind FROM user u
        WHERE u.id = :user AND EXISTS (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.kind = :kind)
        \(Audit.once)
        """)

    /// Deletes the factors of a kind with the codes that were sent. It is part of a change that
    /// `operation` has put into the audit.
    private static func dropped(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        var writes: [BoundStatement] = []
        if kind.isSent {
            writes.append(dropSent(user: .id(user), kind: .word(kind), operation: .id(operation)))
            writes.append(dropEntries(user: .id(user), kind: .word(kind), operation: .id(operation)))
        }
        writes.append(CodeFailures.kept(kind, of: user, as: operation))
        writes.append(dropFactor(user: .id(user), kind: .word(kind), operation: .id(operation)))
        return writes + leftBehind(kind, of: user, at: now, as: operation)
    }

    private static let dropSent = Statement(sentDropped(""))

    private static func sentDropped(_ condition: String) -> String {
        """
        DELETE /*M! s */ FROM sent_code
        /*M! AS s JOIN factor f ON f.id = s.factor_id WHERE */
        /*S! WHERE factor_id IN (SELECT f.id FROM factor f WHERE */
        f.user_id = :user AND f.kind = :kind \(condition) /*S! ) */ AND \(Guards.audited)
        """
    }

    private static let dropEntries = Statement(
        "DELETE FROM outbox WHERE user_id = :user AND factor_id IS NOT NULL AND kind = :kind AND \(Guards.audited)")

    private static let dropFactor = Statement(
        "DELETE FROM factor WHERE user_id = :user AND kind = :kind AND \(Guards.audited)")

    /// Makes unfinished steps with this factor undeliverable in the user's open logins, and the
    /// next factors due.
    private static func leftBehind(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            Steps.giveUp(kind, of: user, at: now, by: operation),
            CascadeSteps.makeDue(of: user, at: now, by: operation),
        ]
    }

    /// Removes an address. The active factor is deleted with the codes sent to it. The waiting
    /// factor loses its address, but its row stays with the wrong codes and the sent codes. A
    /// website that removes an address and adds it again therefore does not reset the counts.
    static func takenAway(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        codesVoided(kind, now: nil, of: user, at: now, as: operation) + [
            CodeFailures.kept(kind, of: user, as: operation), dropActive(kind, of: user, as: operation),
            emptyWaiting(user: .id(user), kind: .word(kind), operation: .id(operation)),
        ]
    }

    private static let emptyWaiting = Statement(
        """
        UPDATE factor SET address = NULL, approval = NULL
        WHERE user_id = :user AND kind = :kind AND state = 'waiting' AND \(Guards.audited)
        """)

    /// The rows from which `takenAway` takes rights: the waiting factor with its address, and the
    /// expiry of its codes.
    static func rows(
        takingAway kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [SignedRows] {
        [.factors(kind, of: user).lenient] + rows(voiding: kind, of: user, at: now, as: operation)
    }

    /// Deletes the codes that were sent to the active address, and expires those that were sent to
    /// the waiting one. Activation codes that were mailed to a former address become void.
    ///
    /// - Parameter address: the address that the user has now.
    static func codesVoided(
        _ kind: Factor, now address: String?, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        guard kind.isSent else { return [] }
        return [
            dropSentOfActive(user: .id(user), kind: .word(kind), operation: .id(operation)),
            voidSentOfWaiting(
                now: .timestamp(now), user: .id(user), kind: .word(kind), operation: .id(operation)),
            dropEntries(user: .id(user), kind: .word(kind), operation: .id(operation)),
        ] + (kind == .mail ? ActivationMails.voidedAtFormerAddress(user, address, at: now, as: operation) : [])
            + (kind == .mail
                ? Recoveries.ended(of: user, because: .address, at: now, noted: operation.id, as: operation) : [])
            + leftBehind(kind, of: user, at: now, as: operation)
    }

    private static let dropSentOfActive = Statement(sentDropped("AND f.state = 'active'"))

    private static let voidSentOfWaiting = Statement(
        """
        UPDATE sent_code SET expires_at = :now WHERE expires_at > :now AND factor_id =
        (SELECT f.id FROM factor f WHERE f.user_id = :user AND f.kind = :kind AND f.state = 'waiting')
        AND \(Guards.audited)
        """)

    /// The rows from which `codesVoided` takes rights: codes that were sent to confirm an address,
    /// and mailed activation codes. A waiting factor has no other codes. The end of a mail address
    /// also ends recoveries, of which an entry tells the website.
    static func rows(
        voiding kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [SignedRows] {
        guard kind.isSent else { return [] }
        let codes = [SignedRows.confirmingCodes(kind, of: user).lenient]
        guard kind == .mail else { return codes }
        return codes + Recoveries.rowsOfEnd(of: user, at: now, as: operation)
    }

    /// Deletes the active factor that another one replaces.
    static func dropActive(_ kind: Factor, of user: UserID, as operation: Operation) -> BoundStatement {
        dropReplaced(user: .id(user), kind: .word(kind), operation: .id(operation))
    }

    private static let dropReplaced = Statement(
        "DELETE FROM factor WHERE user_id = :user AND kind = :kind AND state = 'active' AND \(Guards.audited)")
}
