import Domain
import Relay
import World

/// The operator's queries about the expiry of users.
public enum Expiries {
    /// Sets the expiry of a user; nil removes it. The answer is false if the user was deleted.
    public static func set(
        _ user: UserID, to expiresAt: Timestamp?, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let change = Change(
            "expiry", operation, rows: [.user(user).signed],
            [
                setExpiry(
                    expiresAt: .timestamp(expiresAt), author: .word(expiresAt.map { _ in ChangeAuthor.operator }),
                    operation: .id(operation), user: .id(user)),
                auditExpiry(
                    operation: .id(operation), now: .timestamp(now), author: .word(ChangeAuthor.operator),
                    note: .text(note(expiresAt)), user: .id(user)),
            ])
        return Query(change: change) { rows in rows.happened }
    }

    private static let setExpiry = Statement(
        """
        UPDATE user SET expires_at = :expiresAt, expires_by = :author, operation = :operation WHERE id = :user
        """)

    private static let auditExpiry = Statement(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome, note)
        SELECT :operation, :now, 'user.expiry', u.website_id, u.id, :author, :note FROM user u
        WHERE u.id = :user AND u.operation = :operation
        \(Audit.once)
        """)

    /// The note in the audit.
    static func note(_ expiresAt: Timestamp?) -> String { expiresAt.map { "expires \($0.rfc3339)" } ?? "never expires" }

    /// A user with an expiry.
    public struct Expiring: Sendable, Equatable {
        public let username: String
        public let website: String
        public let expiresAt: Timestamp
    }

    /// The most users in a list.
    public static let most = 1000

    /// Finds the users who expire within the time of the warning, the next one first.
    public static func soon(at now: Timestamp) -> Query<[Expiring]> {
        let script = Script(
            "expiring",
            reads: [
                expiringUsers(
                    now: .timestamp(now), until: .timestamp(now + UserExpiry.warning), most: .integer(Int64(most)))
            ])
        return Query(script: script) { rows throws(StoreFailure) in
            var found: [Expiring] = []
            for row in rows[0] {
                found.append(
                    Expiring(
                        username: try row.text("username"), website: try row.text("website_name"),
                        expiresAt: try row.timestamp("expires_at")))
            }
            return found
        }
    }

    private static let expiringUsers = Statement(
        """
        SELECT u.username, w.name AS website_name, u.expires_at FROM user u JOIN website w ON w.id = u.website_id
        WHERE u.expires_at > :now AND u.expires_at <= :until ORDER BY u.expires_at LIMIT :most
        """)
}
