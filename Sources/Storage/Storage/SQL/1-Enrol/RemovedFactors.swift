import Domain
import Relay
import World

/// How factors go, and what was sent with them.
extension Factors {
    /// Drops the factor of that kind with its codes, and what was approved with nobody knows which factor. False when
    /// there is none.
    public static func drop(
        _ kind: Factor, of user: UserID, by doer: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        var writes =
            [
                BoundStatement(Locks.hold, .id(user)),
                BoundStatement(auditDropped, .id(operation), .timestamp(now), .word(kind), .id(user), .word(kind)),
            ] + dropped(kind, of: user, at: now, as: operation)
        if kind == .recovery { writes.append(RecoveryRows.dropped(user, as: operation)) }
        // A factor can be dropped whoever wrote the rows. The user's row comes first: others wait there.
        return Query(
            change: Change(
                "drop", operation, rows: [.user(user).lenient] + UnusedApprovals.rows(of: user),
                writes + UnusedApprovals.ended(of: user, but: nil, by: .id(operation)))
        ) { rows in rows.happened }
    }

    /// Those of a kind with what was sent. Part of a change that `operation` has put into the audit.
    private static func dropped(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let mine: [SQLValue] = [.id(user), .word(kind), .id(operation)]
        return (kind.isSent ? [BoundStatement(dropSent, values: mine), BoundStatement(dropEntries, values: mine)] : [])
            + [CodeFailures.kept(kind, of: user, as: operation), BoundStatement(dropFactor, values: mine)]
            + leftBehind(kind, of: user, at: now, as: operation)
    }

    /// Of the open logins what was under way by it; what follows begins.
    private static func leftBehind(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            Steps.giveUp(kind, of: user, at: now, by: operation),
            CascadeSteps.makeDue(of: user, at: now, by: operation),
        ]
    }

    /// An address: the one that counts goes with what was sent there. Of the row of one that waits the address goes; the row stays, with its
    /// wrong codes and the codes that it was sent. Whoever takes an address away and gives it again counts on.
    static func takenAway(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let mine: [SQLValue] = [.id(user), .word(kind), .id(operation)]
        return codesVoided(kind, of: user, at: now, as: operation) + [
            CodeFailures.kept(kind, of: user, as: operation), dropActive(kind, of: user, as: operation),
            BoundStatement(emptyWaiting, values: mine),
        ]
    }

    /// The rows that `takenAway` takes from: the address of the factor that waits, and the time of its codes.
    static func rows(takingAway kind: Factor, of user: UserID) -> [SignedRows] {
        [.factors(kind, of: user).lenient] + rows(voiding: kind, of: user)
    }

    /// What was sent to the address that counts is dropped with it, and what was sent to the one that waits counts no more.
    static func codesVoided(
        _ kind: Factor, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        guard kind.isSent else { return [] }
        let mine: [SQLValue] = [.id(user), .word(kind), .id(operation)]
        return [
            BoundStatement(dropSentOfActive, values: mine),
            BoundStatement(voidSentOfWaiting, values: [.timestamp(now), .timestamp(now)] + mine),
            BoundStatement(dropEntries, values: mine),
        ] + leftBehind(kind, of: user, at: now, as: operation)
    }

    /// The rows that `codesVoided` takes from: codes that were sent to confirm an address. A waiting factor has no
    /// others.
    static func rows(voiding kind: Factor, of user: UserID) -> [SignedRows] {
        kind.isSent ? [.confirmingCodes(kind, of: user).lenient] : []
    }

    /// The one that counts, of which another takes the place.
    static func dropActive(_ kind: Factor, of user: UserID, as operation: Operation) -> BoundStatement {
        BoundStatement(dropReplaced, .id(user), .word(kind), .id(operation))
    }
}

private let noted = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let auditDropped = Statement(
    Audit.columns + """
         SELECT ?, ?, 'factor.dropped', u.website_id, u.id, NULL, NULL, ?, NULL FROM user u
        WHERE u.id = ? AND EXISTS (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.kind = ?)
        """ + Audit.once)

private func sentDropped(_ kept: String) -> String {
    """
    DELETE /*M! s */ FROM sent_code
    /*M! AS s JOIN factor f ON f.id = s.factor_id WHERE */ /*S! WHERE factor_id IN (SELECT f.id FROM factor f WHERE */
    f.user_id = ? AND f.kind = ?\(kept) /*S! ) */ AND
    """ + noted
}

private let dropSent = Statement(sentDropped(""))
private let dropSentOfActive = Statement(sentDropped(" AND f.state = 'active'"))

private let voidSentOfWaiting = Statement(
    """
    UPDATE sent_code SET expires_at = ? WHERE expires_at > ? AND factor_id =
    (SELECT f.id FROM factor f WHERE f.user_id = ? AND f.kind = ? AND f.state = 'waiting') AND
    """ + noted)

private let emptyWaiting = Statement(
    "UPDATE factor SET address = NULL, approval = NULL WHERE user_id = ? AND kind = ? AND state = 'waiting' AND" + noted
)

private let dropReplaced = Statement(
    "DELETE FROM factor WHERE user_id = ? AND kind = ? AND state = 'active' AND" + noted)

private let dropEntries = Statement(
    "DELETE FROM outbox WHERE user_id = ? AND factor_id IS NOT NULL AND kind = ? AND" + noted)

private let dropFactor = Statement("DELETE FROM factor WHERE user_id = ? AND kind = ? AND" + noted)
