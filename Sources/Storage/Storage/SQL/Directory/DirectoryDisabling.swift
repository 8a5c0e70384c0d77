import Directory
import Domain
import Relay
import World

extension DirectoryWrites {
    /// Disables a user who has left the source. Open logins fail, and no factor works any more. The
    /// answer is false if the user is disabled already, or no longer belongs to the source.
    public func disable(_ user: DirectoryUser, as operation: Operation) -> Query<Bool> {
        let (id, own) = (user.user, SQLValue.id(operation))
        return Query(
            change: Change(
                "directory disable", operation,
                rows: [.user(id).lenient] + Locks.rows(ending: id, at: now, as: operation),
                [
                    Locks.hold(user: .id(id)),
                    auditDisabled(
                        operation: own, now: .timestamp(now), user: .id(id), website: .id(website),
                        source: .text(source), id: .text(user.id), run: .id(run)),
                    disableUser(operation: own, user: .id(id)),
                    Locks.endOpen(
                        reason: .word(Reason.disabled), now: .timestamp(now), operation: own, user: .id(id), own: own),
                    Steps.skip(of: id, at: now, by: operation),
                    Locks.dropEntries(user: .id(id), operation: own),
                    LoginDecidedRows.insertLoginDecided(of: id, at: now, as: operation),
                    Locks.auditEnded(id, .disabled, at: now, as: operation),
                ])
        ) { rows in rows.happened }
    }
}

private let auditDisabled = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
    SELECT :operation, :now, 'user.disabled', u.website_id, u.id, 'directory' FROM user u
    WHERE u.id = :user AND u.website_id = :website AND u.directory = :source AND u.directory_id = :id
    AND u.state <> 'disabled' AND \(DirectoryRuns.isNewest)
    \(Audit.once)
    """)

/// Disables the user, always with a prior state. MariaDB assigns from left to right, so the prior
/// state comes first.
private let disableUser = Statement(
    """
    UPDATE user SET prior_state = state, state = 'disabled', operation = :operation
    WHERE id = :user AND state <> 'disabled' AND \(Guards.audited)
    """)

extension Locks {
    /// Enables a disabled user on behalf of an operator. The user then belongs to the website, so
    /// that later syncs do not disable the user again. The state before `disabled` returns. Without
    /// one, SQL disabled the user, perhaps to lift a lock, so the user is locked. The answer is
    /// false if the user is not disabled.
    public static func enable(_ user: UserID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        Query(
            change: Change(
                "enable", operation, rows: [.user(user).signed],
                [
                    enableUser(operation: .id(operation), user: .id(user)),
                    auditEnabled(
                        operation: .id(operation), now: .timestamp(now), author: .word(ChangeAuthor.operator),
                        user: .id(user)),
                ])
        ) { rows in rows.happened }
    }

    private static let enableUser = Statement(
        """
        UPDATE user SET state = coalesce(prior_state, 'locked'), prior_state = NULL, directory = NULL,
        directory_id = NULL, policy = NULL, operation = :operation WHERE id = :user AND state = 'disabled'
        """)

    private static let auditEnabled = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'user.enabled', u.website_id, u.id, :author
        FROM user u WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)
}
