import Domain
import Relay
import World

/// The users of a website for operators, in the order of their names.
///
/// It reads pages, so that a website of a million users occupies neither the store nor the memory.
/// Addresses are opened if they are sealed, so a caller can search in them.
public enum UserList {
    public struct Entry: Sendable, Equatable {
        public let id: UserID
        public let username: String
        public let displayName: String?
        public let email: String?
        public let phone: String?
        /// The state at the time of the query: `expired` for an active user whose time is over.
        public let state: UserState
        public let areCodesLocked: Bool
        public let expiresAt: Timestamp?
        /// The source of users that owns the user; nil if the website does.
        public let directory: String?
        public let createdAt: Timestamp
    }

    /// The number of users in a page.
    public static let pageSize = 500

    /// Reads the users whose names follow `name`.
    ///
    /// - Parameter name: the last name of the page before; empty for the first page.
    public static func page(
        of website: WebsiteID, after name: String, at now: Timestamp, most: Int = pageSize
    ) -> Query<[Entry]> {
        let read = usersAfter(website: .id(website), name: .text(name), most: .integer(Int64(most)))
        return Query(script: Script("user list", reads: [read])) { rows throws(StoreFailure) in
            var users: [Entry] = []
            for row in rows[0] {
                let expiresAt = try row.optionalTimestamp("expires_at")
                let state: UserState = try row.word("state")
                users.append(
                    Entry(
                        id: try row.id("id"), username: try row.text("username"),
                        displayName: try row.optionalText("display_name"),
                        email: try row.optionalShownAddress("email"), phone: try row.optionalShownAddress("phone"),
                        state: state.seen(expiresAt, at: now),
                        areCodesLocked: try row.isNull("codes_locked_at") == false,
                        expiresAt: expiresAt, directory: try row.optionalText("directory"),
                        createdAt: try row.timestamp("created_at")))
            }
            return users
        }
    }

    private static let usersAfter = Statement(
        """
        SELECT u.id, u.username, u.display_name, u.email, u.phone, u.state, u.codes_locked_at, u.expires_at, u.directory,
        u.created_at FROM user u WHERE u.website_id = :website AND u.username > :name ORDER BY u.username LIMIT :most
        """)
}
