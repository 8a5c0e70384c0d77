import Domain
import Relay
import World

/// What the operator's tool does with websites.
public enum Websites {
    public struct New: Sendable {
        public let id: WebsiteID
        public let name: String
        public let displayName: String
        /// JSON of the policies that differ from the installation's.
        public let policy: String
        public let callback: String?
        public let keyThumbprint: [UInt8]
        public let createdAt: Timestamp

        public init(
            id: WebsiteID, name: String, displayName: String, policy: String, callback: String?,
            keyThumbprint: [UInt8], createdAt: Timestamp
        ) {
            self.id = id
            self.name = name
            self.displayName = displayName
            self.policy = policy
            self.callback = callback
            self.keyThumbprint = keyThumbprint
            self.createdAt = createdAt
        }
    }

    public struct Listed: Sendable, Equatable {
        public let name: String
        public let displayName: String
        public let state: String
        public let policy: String
        public let callback: String?
        public let users: Int64
        public let createdAt: Timestamp
    }

    /// False when the name was given to a website before: a name is never given twice.
    public static func add(_ website: New, as operation: Operation) -> Query<Bool> {
        Query(
            change: Change(
                "website add", operation,
                [
                    Step(
                        insertWebsite, .id(website.id), .text(website.name), .text(website.displayName),
                        .text(website.policy), .text(website.callback), .moment(website.createdAt), .id(operation)),
                    Step(
                        insertKey, .blob(website.keyThumbprint), .moment(website.createdAt), .id(website.id),
                        .id(operation)),
                    Step(auditWebsite, .id(operation), .moment(website.createdAt), .id(website.id), .id(operation)),
                ])
        ) { rows in rows.happened }
    }

    public static func list() -> Query<[Listed]> {
        Query(script: Script("website list", reads: [Step(listWebsites)])) { rows throws(StoreFailure) in
            var list: [Listed] = []
            for row in rows[0] {
                list.append(
                    Listed(
                        name: try row.text(0), displayName: try row.text(1), state: try row.text(2),
                        policy: try row.text(3), callback: try row.optionalText(4), users: try row.integer(5),
                        createdAt: try row.moment(6)))
            }
            return list
        }
    }
}

private let insertWebsite = Statement(
    """
    INSERT INTO website (id, name, display_name, state, policy, callback, created_at, operation)
    SELECT ?, ?, ?, 'active', ?, ?, ?, ? /*M! FROM DUAL */ WHERE 1 = 1
    /*M! ON DUPLICATE KEY UPDATE id = website.id */ /*S! ON CONFLICT DO NOTHING */
    """)

private let insertKey = Statement(
    """
    INSERT INTO website_key (thumbprint, website_id, created_at)
    SELECT ?, w.id, ? FROM website w WHERE w.id = ? AND w.operation = ?
    """)

private let auditWebsite = Statement(
    Audit.columns + """
         SELECT ?, ?, 'website.added', w.id, NULL, NULL, NULL, NULL, NULL FROM website w WHERE w.id = ? AND w.operation = ?
        """ + Audit.once)

private let listWebsites = Statement(
    """
    SELECT w.name, w.display_name, w.state, w.policy, w.callback,
        (SELECT count(*) FROM user u WHERE u.website_id = w.id), w.created_at
    FROM website w ORDER BY w.name
    """)
