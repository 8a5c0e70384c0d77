import Domain
import Relay

/// The subject of an audit row: whom and what it is about.
public struct AuditSubject: Sendable, Equatable {
    public var website: WebsiteID?
    public var user: UserID?
    public var device: DeviceID?

    public init(website: WebsiteID? = nil, user: UserID? = nil, device: DeviceID? = nil) {
        (self.website, self.user, self.device) = (website, user, device)
    }

    /// A subject as a person names it.
    public enum Named: Sendable, Equatable {
        case website(String)
        case user(String, website: String)
        case identified(UserID)
        case device(DeviceID)
    }

    /// Looks the ids of a subject up. They are missing for one that the store does not have.
    public static func find(_ named: Named) -> Query<AuditSubject> {
        let read =
            switch named {
            case .website(let name): websiteByName(website: .text(name))
            case .user(let name, let website): userByName(website: .text(website), username: .text(name))
            case .identified(let id): userByID(user: .id(id))
            case .device(let id): deviceByID(device: .id(id))
            }
        return Query(script: Script("subject", reads: [read])) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return AuditSubject() }
            return AuditSubject(
                website: try row.optionalID("website_id"), user: try row.optionalID("user_id"),
                device: try row.optionalID("device_id"))
        }
    }

    private static let websiteByName = Statement(
        "SELECT id AS website_id, NULL AS user_id, NULL AS device_id FROM website WHERE name = :website")

    private static let users =
        "SELECT u.website_id, u.id AS user_id, NULL AS device_id FROM user u JOIN website w ON w.id = u.website_id"

    private static let userByName = Statement("\(users) WHERE w.name = :website AND u.username = :username")
    private static let userByID = Statement("\(users) WHERE u.id = :user")

    private static let deviceByID = Statement(
        """
        SELECT u.website_id, u.id AS user_id, d.id AS device_id FROM device d JOIN user u ON u.id = d.user_id
        WHERE d.id = :device
        """)
}
