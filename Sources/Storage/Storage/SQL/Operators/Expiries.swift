import Domain
import JSON
import Relay
import World

/// The operator's queries about the expiry of users.
public enum Expiries {
    /// Sets the expiry of a user; nil removes it. The answer is false if the user was deleted.
    ///
    /// - Parameter before: the present expiry, for the audit.
    public static func set(
        _ user: UserID, from before: Timestamp? = nil, to expiresAt: Timestamp?, at now: Timestamp,
        as operation: Operation
    ) -> Query<Bool> {
        var changes = ChangedValues()
        changes.note("expires_at", .text(before?.rfc3339), .text(expiresAt?.rfc3339))
        let change = Change(
            "expiry", operation, rows: [.user(user).signed],
            [
                setExpiry(
                    expiresAt: .timestamp(expiresAt), author: .word(expiresAt.map { _ in ChangeAuthor.operator }),
                    operation: .id(operation), user: .id(user)),
                auditExpiry(
                    operation: .id(operation), now: .timestamp(now), author: .word(ChangeAuthor.operator),
                    note: .text(note(expiresAt)), changes: .text(changes.text), user: .id(user)),
            ])
        return Query(change: change) { rows in rows.happened }
    }

    private static let setExpiry = Statement(
        """
        UPDATE user SET expires_at = :expiresAt, expires_by = :author, operation = :operation WHERE id = :user
        """)

    private static let auditExpiry = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :operation, :now, 'user.expiry', u.website_id, u.id, :author FROM user u
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

    /// A list of users, which ends after `most`, with the number of all of them.
    public struct Found: Sendable, Equatable {
        public let users: [Expiring]
        public let count: Int64
    }

    /// The most users in a list.
    public static let most = 1000

    /// Finds the active users who expire within the time of the warning, the next one first.
    public static func soon(at now: Timestamp, most: Int = most) -> Query<Found> {
        let (from, until) = (SQLValue.timestamp(now), SQLValue.timestamp(now + UserExpiry.warning))
        return found(
            expiringUsers(now: from, until: until, most: .integer(Int64(most))),
            countExpiring(now: from, until: until))
    }

    /// Finds the users who have expired, the last one first. Users in another state than active are
    /// left out, because they show that state.
    public static func past(at now: Timestamp, most: Int = most) -> Query<Found> {
        found(
            expiredUsers(now: .timestamp(now), most: .integer(Int64(most))), countExpired(now: .timestamp(now)))
    }

    private static func found(_ list: BoundStatement, _ count: BoundStatement) -> Query<Found> {
        Query(script: Script("expiring", reads: [list, count])) { rows throws(StoreFailure) in
            var users: [Expiring] = []
            for row in rows[0] {
                users.append(
                    Expiring(
                        username: try row.text("username"), website: try row.text("website_name"),
                        expiresAt: try row.timestamp("expires_at")))
            }
            return Found(users: users, count: try rows[1].first?.integer("user_count") ?? 0)
        }
    }

    private static let expiringUsers = Statement("\(listed) \(isExpiring) ORDER BY u.expires_at LIMIT :most")
    private static let countExpiring = Statement("\(counted) \(isExpiring)")
    private static let expiredUsers = Statement("\(listed) \(hasExpired) ORDER BY u.expires_at DESC LIMIT :most")
    private static let countExpired = Statement("\(counted) \(hasExpired)")

    private static let listed = """
        SELECT u.username, w.name AS website_name, u.expires_at FROM user u JOIN website w ON w.id = u.website_id WHERE
        """
    private static let counted = "SELECT count(*) AS user_count FROM user u WHERE"
    private static let isExpiring = "u.expires_at > :now AND u.expires_at <= :until AND u.state = 'active'"
    private static let hasExpired = "u.expires_at <= :now AND u.state = 'active'"
}
