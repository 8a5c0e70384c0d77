import Bytes
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
        public let certificate: WebsiteCertificate?
        /// The removed website whose name this one gets; nil if nobody has had the name.
        public let predecessor: WebsiteID?
        public let createdAt: Timestamp

        public init(
            id: WebsiteID, name: String, displayName: String, policy: String, webhook: WebhookEndpoints.New?,
            keyThumbprint: [UInt8], certificate: WebsiteCertificate? = nil, predecessor: WebsiteID? = nil,
            createdAt: Timestamp
        ) {
            self.certificate = certificate
            self.predecessor = predecessor
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

        public var isRemoved: Bool { state == "removed" }
    }
}

// MARK: Reading

extension Websites {
    public static func list() -> Query<[Listed]> {
        Query(script: Script("website list", reads: [listWebsites()])) { rows throws(StoreFailure) in
            try rows[0].websites()
        }
    }

    private static let listWebsites = Statement("\(websites) ORDER BY w.name")

    public static func named(_ name: String) -> Query<Listed?> {
        Query(script: Script("website show", reads: [websiteByName(name: .text(name))])) {
            rows throws(StoreFailure) in
            try rows[0].websites().first
        }
    }

    private static let websiteByName = Statement("\(websites) WHERE w.name = :name")

    /// Returns a website, also one whose name was given away.
    public static func identified(_ id: WebsiteID) -> Query<Listed?> {
        Query(script: Script("website show", reads: [websiteByID(id: .id(id))])) { rows throws(StoreFailure) in
            try rows[0].websites().first
        }
    }

    private static let websiteByID = Statement("\(websites) WHERE w.id = :id")

    private static let websites = """
        SELECT w.id, w.name, w.display_name, w.state, w.policy, w.webhook_url,
        (SELECT count(*) FROM user u WHERE u.website_id = w.id) AS user_count, w.created_at, \(EndpointHealth.columns)
        FROM website w LEFT JOIN webhook_endpoint ep ON ep.website_id = w.id AND w.webhook_url IS NOT NULL
        """
}

extension Rows {
    fileprivate func websites() throws(StoreFailure) -> [Websites.Listed] {
        var list: [Websites.Listed] = []
        for row in self {
            list.append(
                Websites.Listed(
                    id: try row.id("id"), name: try row.text("name"),
                    traits: Websites.Traits(
                        displayName: try row.text("display_name"), policy: try row.text("policy"),
                        webhook: try row.optionalText("webhook_url")),
                    state: try row.text("state"), users: try row.integer("user_count"),
                    createdAt: try row.timestamp("created_at"),
                    health: try row.isNull("endpoint_state") ? nil : EndpointHealth.read(row)))
        }
        return list
    }
}

// MARK: Changes

extension Websites {
    /// Adds a website. The answer is false if a website has had the name before: a name is reused
    /// only if that website was removed, and the caller names it.
    public static func add(_ website: New, as operation: Operation) -> Query<Bool> {
        let now = SQLValue.timestamp(website.createdAt)
        return Query(
            change: Change(
                "website add", operation,
                rows: [.website(website.id).signed, .websiteKey(website.keyThumbprint).signed]
                    + (website.predecessor.map { [SignedRows.website($0).signed] } ?? []),
                (website.predecessor.map { [WebsiteRemoval.retire($0, name: website.name, as: operation)] } ?? []) + [
                    insertWebsite(
                        website: .id(website.id), name: .text(website.name), displayName: .text(website.displayName),
                        policy: .text(website.policy), url: .text(website.endpoint?.url), now: now,
                        operation: .id(operation)),
                    insertKey(
                        thumbprint: .blob(website.keyThumbprint), now: now,
                        notBefore: .timestamp(website.certificate?.notBefore),
                        notAfter: .timestamp(website.certificate?.notAfter),
                        issuer: .blob(website.certificate?.issuer), serial: .text(website.certificate?.serial),
                        website: .id(website.id), operation: .id(operation)),
                    auditChange(
                        operation: .id(operation), now: now, event: .text("website.added"), website: .id(website.id),
                        note: .text(Hex.encode(website.keyThumbprint)),
                        changes: .text(WebsiteDifference.json(of: website))),
                ]
                    + WebhookEndpoints.steps(
                        of: website.id, from: nil, to: website.endpoint?.url, website.endpoint?.secrets,
                        at: website.createdAt, as: operation))
        ) { rows in rows.happened }
    }

    private static let insertWebsite = Statement(
        into: .website, once: true,
        """
        INSERT INTO website (id, name, display_name, state, policy, webhook_url, created_at, operation)
        SELECT :website, :name, :displayName, 'active', :policy, :url, :now, :operation
        /*M! FROM DUAL */ WHERE 1 = 1
        """)

    private static let insertKey = Statement(into: .websiteKey, newKey)

    /// The key of a website whose row the operation has marked.
    static let newKey = """
        INSERT INTO website_key (thumbprint, website_id, created_at, not_before, not_after, issuer, serial)
        SELECT :thumbprint, w.id, :now, :notBefore, :notAfter, :issuer, :serial FROM website w
        WHERE w.id = :website AND w.operation = :operation
        """

    /// Audits an operator's change that has marked the website's row.
    static let auditChange = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, outcome)
        SELECT :operation, :now, :event, w.id, 'operator' FROM website w
        WHERE w.id = :website AND w.operation = :operation
        \(Audit.once)
        """)

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
                    updateWebsite(
                        displayName: .text(new.displayName), policy: .text(new.policy), url: .text(new.webhookURL),
                        operation: .id(operation), website: .id(website), oldDisplayName: .text(old.displayName),
                        oldPolicy: .text(old.policy), oldURL: .text(old.webhookURL)),
                    auditChange(
                        operation: .id(operation), now: .timestamp(now), event: .text("website.edited"),
                        website: .id(website), changes: .text(WebsiteDifference.json(from: old, to: new))),
                ]
                    + WebhookEndpoints.steps(
                        of: website, from: old.webhookURL, to: new.webhookURL, secrets, at: now, as: operation))
        ) { rows in rows.happened }
    }

    private static let updateWebsite = Statement(
        """
        UPDATE website SET display_name = :displayName, policy = :policy, webhook_url = :url, operation = :operation
        WHERE id = :website AND display_name = :oldDisplayName AND policy = :oldPolicy
        AND webhook_url /*M! <=> */ /*S! IS */ :oldURL
        """)
}
