import Directory
import Domain
import Relay
import World

/// Reads the users that a sync compares with its source. The rows are not checked here: each change
/// checks the row that it writes.
public enum DirectoryUsers {
    /// The most users that one query returns.
    public static let page = 1000

    /// The users that a source owns, in the order of their ids in the source.
    ///
    /// - Parameter after: the id in the source after which the page begins; empty for the first.
    public static func owned(
        by source: String, of website: WebsiteID, after id: String
    ) -> Query<[DirectoryUser]> {
        let read = ownedAfter(
            website: .id(website), source: .text(source), after: .text(id), limit: .integer(Int64(page)))
        return Query(script: Script("directory users", reads: [read])) { rows throws(StoreFailure) in
            var users: [DirectoryUser] = []
            for row in rows[0] { users.append(try user(row)) }
            return users
        }
    }

    private static let columns = """
        SELECT id, username, email, phone, display_name, language, policy, state, directory, directory_id FROM user
        """

    private static let ownedAfter = Statement(
        """
        \(columns) WHERE website_id = :website AND directory = :source AND directory_id > :after
        ORDER BY directory_id LIMIT :limit
        """)

    /// The users of the website who have a username or an address of these records.
    public static func holders(of records: [DirectoryRecord], in website: WebsiteID) -> Query<[DirectoryUser]> {
        let website = SQLValue.id(website)
        var reads: [BoundStatement] = []
        for record in records {
            reads.append(byName(website: website, value: .text(record.username)))
            for (byAddress, address) in [(byMail, record.email), (byPhone, record.phone)] where address != nil {
                reads.append(
                    byAddress.bound(["website": website], lists: ["value": .forms(ofAddress: address)]))
            }
        }
        return Query(script: Script("directory users", reads: reads)) { answers throws(StoreFailure) in
            var users: [UserID: DirectoryUser] = [:]
            for rows in answers {
                for row in rows {
                    let user = try user(row)
                    users[user.user] = user
                }
            }
            return Array(users.values)
        }
    }

    private static let byName = Statement("\(columns) WHERE website_id = :website AND username = :value")
    private static let byMail = Statement(
        "\(columns) WHERE website_id = :website AND \(PersonalForms.equal("email", "value"))")
    private static let byPhone = Statement(
        "\(columns) WHERE website_id = :website AND \(PersonalForms.equal("phone", "value"))")

    /// An address that does not open must not stop the sync of all others. It is read as it is.
    private static func user(_ row: Row) throws(StoreFailure) -> DirectoryUser {
        let (email, phone) = (try row.optionalShownAddress("email"), try row.optionalShownAddress("phone"))
        return DirectoryUser(
            user: try row.id("id"), username: try row.text("username"), email: email, phone: phone,
            displayName: try row.optionalText("display_name"),
            language: try row.optionalText("language"), policy: try row.optionalText("policy"),
            isDisabled: try row.text("state") == UserState.disabled.rawValue,
            source: try row.optionalText("directory"), id: try row.optionalText("directory_id"),
            hasUnreadableAddress: [email, phone].contains { $0?.hasPrefix(PersonalSealer.marker) == true })
    }
}
