import Domain
import Relay
import World

/// The logins of a user for operators, the newest first. A login is deleted after `retention.logins`.
public enum LoginHistory {
    public struct Login: Sendable {
        public let id: ChallengeID
        public let life: ChallengeLife
        public let askedAt: Timestamp
        public let decidedAt: Timestamp?
        /// The factor that decided, or the current one.
        public let factor: Factor?
        public let proof: Proof?
        /// The means by which the phone verified its owner.
        public let uv: String?
        /// The phone that decided.
        public let device: DeviceID?
        /// The present name of that phone.
        public let deviceName: String?
        public let placeCheck: PlaceCheck?
        /// Whether it is an approval of a change, and no login.
        public let isApproval: Bool
        /// The context that the phone showed, as JSON; nil if it is sealed and cannot be opened.
        public let context: [UInt8]?
    }

    /// The most logins of a query.
    public static let most = 1000

    /// Reads the logins that were asked before `end`.
    public static func logins(of user: UserID, before end: Timestamp, most: Int) -> Query<[Login]> {
        let read = loginsBefore(
            user: .id(user), end: .timestamp(end), most: .integer(Int64(min(most, Self.most))))
        return Query(script: Script("user logins", reads: [read])) { rows throws(StoreFailure) in
            var logins: [Login] = []
            for row in rows[0] { logins.append(try login(row)) }
            return logins
        }
    }

    private static func login(_ row: Row) throws(StoreFailure) -> Login {
        Login(
            id: try row.id("id"),
            life: try row.life(),
            askedAt: try row.timestamp("asked_at"), decidedAt: try row.optionalTimestamp("decided_at"),
            factor: try row.optionalWord("factor"), proof: try row.optionalWord("proof"),
            uv: try row.optionalText("uv"), device: try row.optionalID("device_id"),
            deviceName: try row.optionalText("device_name"), placeCheck: try row.optionalWord("place_check"),
            isApproval: try row.isNull("approves") == false, context: try? row.context("context"))
    }

    private static let loginsBefore = Statement(
        """
        SELECT c.id, c.state, c.decision, c.reason, c.expires_at, c.asked_at, c.decided_at, c.factor, c.proof, c.uv,
        c.device_id, c.place_check, c.approves, c.context, d.name AS device_name
        FROM challenge c LEFT JOIN device d ON d.id = c.device_id
        WHERE c.user_id = :user AND c.asked_at < :end ORDER BY c.asked_at DESC LIMIT :most
        """)
}
