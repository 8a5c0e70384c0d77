import Domain
import Relay
import World

/// The search for the users of a mail address or phone number, over all websites. With the setting
/// `seal: personal`, SQL alone cannot find them.
public enum AddressHolders {
    /// A place where the store has the address.
    public struct Holder: Sendable, Equatable {
        public let website: String
        public let username: String
        public let user: UserID
        /// The table and the column, such as `user.email`.
        public let place: String
    }

    /// The places of an address, in every form. It reads all users, so only an operator uses it.
    public static func find(_ address: String) -> Query<[Holder]> {
        let read = holders.bound([:], lists: ["address": .forms(ofAddress: address)])
        return Query(script: Script("user find", reads: [read])) { rows throws(StoreFailure) in
            var holders: [Holder] = []
            for row in rows[0] {
                holders.append(
                    Holder(
                        website: try row.text("website_name"), username: try row.text("username"),
                        user: try row.id("id"), place: try row.text("address_place")))
            }
            return holders
        }
    }

    private static let holders = Statement(
        """
        SELECT w.name AS website_name, u.username, u.id, p.address_place FROM (\(places)) p
        JOIN user u ON u.id = p.user_id JOIN website w ON w.id = u.website_id
        ORDER BY w.name, u.username, p.address_place
        """)

    private static let places = [
        place("user", "id", "email"), place("user", "id", "phone"), place("user", "id", "former_email"),
        place("factor", "user_id", "address"), place("activation", "user_id", "address"),
        place("recovery", "user_id", "address"), place("outbox", "user_id", "address"),
    ].joined(separator: " UNION ")

    private static func place(_ table: String, _ user: String, _ column: String) -> String {
        """
        SELECT \(user) AS user_id, '\(table).\(column)' AS address_place FROM \(table)
        WHERE \(PersonalForms.equal(column, "address"))
        """
    }
}
