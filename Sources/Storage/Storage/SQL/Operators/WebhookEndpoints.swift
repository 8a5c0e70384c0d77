import Domain
import Relay
import Webhooks
import World

/// The operator's queries about webhook endpoints.
public enum WebhookEndpoints {
    /// The sealed secrets with which webhooks are signed: see `WebhookSecretSeal`.
    public struct Secrets: Sendable, Equatable {
        public let sealed: [UInt8]
        public let sealedBy: String

        public init(sealed: [UInt8], sealedBy: String) {
            self.sealed = sealed
            self.sealedBy = sealedBy
        }
    }

    /// An endpoint for a website that has none.
    public struct New: Sendable {
        public let url: String
        public let secrets: Secrets

        public init(url: String, secrets: Secrets) {
            self.url = url
            self.secrets = secrets
        }
    }

    public struct View: Sendable {
        public let sealed: [UInt8]
        /// The time until which a second secret is valid, too; nil if there is one secret.
        public let previousUntil: Timestamp?
        /// When the newest secret was made, and when the website fetched it last.
        public let madeAt: Timestamp
        public let fetchedAt: Timestamp?
        public let health: WebhookHealth
        /// The number of webhooks that wait. `oldest` is the creation time of the oldest one.
        public let waiting: Int64
        public let oldest: Timestamp?
        /// The number of dead letters.
        public let dead: Int64
    }

    /// Finds the endpoint of a website; nil if it has none.
    public static func find(_ website: WebsiteID) -> Query<View?> {
        let reads = [readEndpoint(website: .id(website)), countWebhooks(website: .id(website))]
        return Query(script: Script("webhook endpoint", reads: reads)) { rows throws(StoreFailure) in
            guard let row = rows[0].first, let counts = rows[1].first else { return nil }
            return View(
                sealed: try row.blob("secrets"), previousUntil: try row.optionalTimestamp("previous_until"),
                madeAt: try row.timestamp("made_at"), fetchedAt: try row.optionalTimestamp("fetched_at"),
                health: try EndpointHealth.read(row), waiting: try counts.integer("waiting_count"),
                oldest: try counts.optionalTimestamp("oldest_created_at"), dead: try counts.integer("dead_count"))
        }
    }

    private static let readEndpoint = Statement(
        """
        SELECT ep.secrets, ep.previous_until, ep.made_at, ep.fetched_at, \(EndpointHealth.columns)
        FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
        WHERE ep.website_id = :website AND w.webhook_url IS NOT NULL
        """)

    private static let countWebhooks = Statement(
        """
        SELECT count(webhook_due_at) AS waiting_count,
        min(CASE WHEN dead_at IS NULL THEN created_at END) AS oldest_created_at, count(dead_at) AS dead_count
        FROM outbox /*M! FORCE INDEX (outbox_webhook) */ WHERE website_id = :website
        """)
}

// MARK: Changes of the endpoint alone

extension WebhookEndpoints {
    /// Replaces the secrets. The answer is false if somebody else has changed them meanwhile.
    public static func rotate(
        _ website: WebsiteID, from old: [UInt8], to new: Secrets, previousUntil: Timestamp?, at now: Timestamp,
        by author: KeyRoll.Author = .operator, as operation: Operation
    ) -> Query<Bool> {
        change(
            "rotate", website, "webhook.rotated", at: now, by: author, as: operation,
            replaceSecrets(
                new: .blob(new.sealed), key: .text(new.sealedBy), previousUntil: .timestamp(previousUntil),
                now: .timestamp(now), operation: .id(operation), website: .id(website), old: .blob(old)))
    }

    private static let replaceSecrets = Statement(
        """
        UPDATE webhook_endpoint
        SET secrets = :new, sealed_by = :key, previous_until = :previousUntil, made_at = :now, fetched_at = NULL,
        operation = :operation
        WHERE website_id = :website AND secrets = :old
        """)

    /// Disables the endpoint; its webhooks wait from now on. The answer is false if it is disabled
    /// already.
    public static func disable(_ website: WebsiteID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "disable", website, "webhook.disabled", at: now, as: operation,
            disableActive(
                reason: .word(WebhookHealth.Reason.operator), now: .timestamp(now), operation: .id(operation),
                website: .id(website)))
    }

    private static let disableActive = Statement(
        """
        UPDATE webhook_endpoint SET state = 'disabled', disabled_by = :reason, disabled_at = :now, operation = :operation
        WHERE website_id = :website AND state = 'active'
        """)

    /// Enables the endpoint, with a failure count of zero. `makeDue` must run before it. The answer
    /// is false if the endpoint is not disabled.
    public static func enable(_ website: WebsiteID, at now: Timestamp, as operation: Operation) -> Query<Bool> {
        change(
            "enable", website, "webhook.enabled", at: now, as: operation,
            enableDisabled(operation: .id(operation), website: .id(website)))
    }

    private static let enableDisabled = Statement(
        """
        UPDATE webhook_endpoint SET state = 'active', disabled_by = NULL, disabled_at = NULL, failing_since = NULL,
        failed_attempts = 0, operation = :operation
        WHERE website_id = :website AND state = 'disabled'
        """)

    private static func change(
        _ name: StaticString, _ website: WebsiteID, _ event: String, at now: Timestamp,
        by author: KeyRoll.Author = .operator, as operation: Operation, _ step: BoundStatement
    ) -> Query<Bool> {
        let audit = auditChange(
            operation: .id(operation), now: .timestamp(now), event: .text(event), author: .word(author),
            website: .id(website))
        return Query(change: Change(name, operation, [step, audit])) { $0.happened }
    }

    private static let auditChange = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, outcome)
        SELECT :operation, :now, :event, ep.website_id, :author FROM webhook_endpoint ep
        WHERE ep.website_id = :website AND ep.operation = :operation
        \(Audit.once)
        """)
}

// MARK: Changes with the website

extension WebhookEndpoints {
    /// Changes the endpoint of a website whose row this change has written.
    ///
    /// - Parameter secrets: the secrets of a new endpoint.
    static func steps(
        of website: WebsiteID, from old: String?, to new: String?, _ secrets: Secrets?, at now: Timestamp,
        as operation: Operation
    ) -> [BoundStatement] {
        let (website, operation) = (SQLValue.id(website), SQLValue.id(operation))
        if let secrets {
            return [
                dropEndpoint(website: website, operation: operation),
                insertEndpoint(
                    secrets: .blob(secrets.sealed), key: .text(secrets.sealedBy), operation: operation,
                    now: .timestamp(now), website: website),
            ]
        }
        guard old != new else { return [] }
        let change = new == nil ? dropEndpoint : clearFailures
        return [change(website: website, operation: operation)]
    }

    private static let dropEndpoint = Statement(
        "DELETE FROM webhook_endpoint WHERE website_id = :website AND \(websiteWritten)")

    private static let insertEndpoint = Statement(
        """
        INSERT INTO webhook_endpoint (website_id, secrets, sealed_by, state, failed_attempts, operation, made_at)
        SELECT w.id, :secrets, :key, 'active', 0, :operation, :now
        FROM website w WHERE w.id = :website AND w.operation = :operation
        """)

    /// Clears the failures after a change of the URL, because they belong to the former one. A
    /// disabled endpoint stays disabled.
    private static let clearFailures = Statement(
        """
        UPDATE webhook_endpoint SET failing_since = NULL, failed_attempts = 0
        WHERE website_id = :website AND state = 'active' AND \(websiteWritten)
        """)

    /// The condition that the operation has written the website's row.
    private static let websiteWritten =
        "EXISTS (SELECT 1 FROM website w WHERE w.id = :website AND w.operation = :operation)"
}
