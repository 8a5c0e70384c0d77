import Domain
import Relay
import Webhooks
import World

/// The operator's queries about websites.
public enum Websites {
    public struct New: Sendable {
        public let id: WebsiteID
        public let name: String
        public let displayName: String
        /// The policies that differ from the installation's, as JSON.
        public let policy: String
        public let endpoint: WebhookEndpoints.New?
        public let keyThumbprint: [UInt8]
        public let createdAt: Timestamp

        public init(
            id: WebsiteID, name: String, displayName: String, policy: String, webhook: WebhookEndpoints.New?,
            keyThumbprint: [UInt8], createdAt: Timestamp
        ) {
            self.id = id
            self.name = name
            self.displayName = displayName
            self.policy = policy
            self.endpoint = webhook
            self.keyThumbprint = keyThumbprint
            self.createdAt = createdAt
        }
    }

    /// The traits that `website edit` can change.
    public struct Traits: Sendable, Equatable {
        public var displayName: String
        /// The policies that differ from the installation's, as JSON.
        public var policy: String
        public var webhookURL: String?

        public init(displayName: String, policy: String, webhook: String?) {
            self.displayName = displayName
            self.policy = policy
            self.webhookURL = webhook
        }
    }

    public struct Listed: Sendable, Equatable {
        public let id: WebsiteID
        public let name: String
        public let traits: Traits
        public let state: String
        public let users: Int64
        public let createdAt: Timestamp
        /// The health of the webhook endpoint; nil if the website has none.
        public let health: WebhookHealth?
    }

    /// Adds a website. The answer is false if a website has had the name before: a name is never
    /// reused.
    public static func add(_ website: New, as operation: Operation) -> Query<Bool> {
        Query(
            change: Change(
                "website add", operation,
                rows: [.website(website.id).signed, .websiteKey(website.keyThumbprint).signed],
                [
                    BoundStatement(
                        insertWebsite, .id(website.id), .text(website.name), .text(website.displayName),
                        .text(website.policy), .text(website.endpoint?.url), .timestamp(website.createdAt),
                        .id(operation)),
                    BoundStatement(
                        insertKey, .blob(website.keyThumbprint), .timestamp(website.createdAt), .id(website.id),
                        .id(operation)),
                    BoundStatement(
                        auditWebsite, .id(operation), .timestamp(website.createdAt), .id(website.id), .id(operation)),
                ]
                    + WebhookEndpoints.steps(
                        of: website.id, from: nil, to: website.endpoint?.url, website.endpoint?.secrets, as: operation))
        ) { rows in rows.happened }
    }

    public static func list() -> Query<[Listed]> {
        Query(script: Script("website list", reads: [BoundStatement(listWebsites)])) { rows throws(StoreFailure) in
            try rows[0].websites()
        }
    }

    public static func named(_ name: String) -> Query<Listed?> {
        Query(script: Script("website show", reads: [BoundStatement(websiteByName, .text(name))])) {
            rows throws(StoreFailure) in
            try rows[0].websites().first
        }
    }

    /// Changes a website. The answer is false if somebody else has changed it since it was read.
    ///
    /// - Parameter secrets: the secrets of a new webhook endpoint.
    public static func edit(
        _ website: WebsiteID, from old: Traits, to new: Traits, secrets: WebhookEndpoints.Secrets? = nil,
        at now: Timestamp,
        as operation: Operation
    ) -> Query<Bool> {
        Query(
            change: Change(
                "website edit", operation, rows: [.website(website).signed],
                [
                    BoundStatement(
                        updateWebsite, .text(new.displayName), .text(new.policy), .text(new.webhookURL), .id(operation),
                        .id(website), .text(old.displayName), .text(old.policy), .text(old.webhookURL)),
                    BoundStatement(auditEdit, .id(operation), .timestamp(now), .id(website), .id(operation)),
                ]
                    + WebhookEndpoints.steps(
                        of: website, from: old.webhookURL, to: new.webhookURL, secrets, as: operation))
        ) { rows in rows.happened }
    }
}

extension Rows {
    fileprivate func websites() throws(StoreFailure) -> [Websites.Listed] {
        var list: [Websites.Listed] = []
        for row in self {
            list.append(
                Websites.Listed(
                    id: try row.id(0), name: try row.text(1),
                    traits: Websites.Traits(
                        displayName: try row.text(2), policy: try row.text(4), webhook: try row.optionalText(5)),
                    state: try row.text(3), users: try row.integer(6), createdAt: try row.timestamp(7),
                    health: try row.isNull(8) ? nil : row.health(8)))
        }
        return list
    }
}

private let insertWebsite = Statement(
    into: .website, once: true,
    """
    INSERT INTO website (id, name, display_name, state, policy, webhook_url, created_at, operation)
    SELECT ?, ?, ?, 'active', ?, ?, ?, ? /*M! FROM DUAL */ WHERE 1 = 1
    """)

private let insertKey = Statement(
    into: .websiteKey,
    """
    INSERT INTO website_key (thumbprint, website_id, created_at)
    SELECT ?, w.id, ? FROM website w WHERE w.id = ? AND w.operation = ?
    """)

private let auditWebsite = Statement(
    Audit.columns + """
         SELECT ?, ?, 'website.added', w.id, NULL, NULL, NULL, 'operator', NULL FROM website w
        WHERE w.id = ? AND w.operation = ?
        """ + Audit.once)

private let updateWebsite = Statement(
    """
    UPDATE website SET display_name = ?, policy = ?, webhook_url = ?, operation = ?
    WHERE id = ? AND display_name = ? AND policy = ? AND webhook_url /*M! <=> */ /*S! IS */ ?
    """)

private let auditEdit = Statement(
    Audit.columns + """
         SELECT ?, ?, 'website.edited', w.id, NULL, NULL, NULL, 'operator', NULL FROM website w
        WHERE w.id = ? AND w.operation = ?
        """ + Audit.once)

private let websites = """
    SELECT w.id, w.name, w.display_name, w.state, w.policy, w.webhook_url,
        (SELECT count(*) FROM user u WHERE u.website_id = w.id), w.created_at,
        ep.state, ep.disabled_by, ep.disabled_at, ep.failing_since, ep.failed_attempts
    FROM website w LEFT JOIN webhook_endpoint ep ON ep.website_id = w.id AND w.webhook_url IS NOT NULL
    """
private let listWebsites = Statement(websites + " ORDER BY w.name")
private let websiteByName = Statement(websites + " WHERE w.name = ?")
