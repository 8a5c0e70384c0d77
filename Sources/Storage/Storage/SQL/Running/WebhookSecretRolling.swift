import Domain
import Relay
import Webhooks
import World

extension Store: WebhookSecretStore {
    public func webhookSecrets(of website: WebsiteID) async throws(StoreFailure) -> StoredWebhookSecrets? {
        try await run(WebhookSecretRows.find(website))
    }

    public func recordFetch(
        of secrets: StoredWebhookSecrets, previousUntil: Timestamp?, at now: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(WebhookSecretRows.fetched(secrets, previousUntil: previousUntil, at: now, as: operation))
    }

    public func agedWebhookSecrets(
        after last: StoredWebhookSecrets?, madeBefore: Timestamp, at now: Timestamp
    ) async throws(StoreFailure) -> [StoredWebhookSecrets] {
        try await run(WebhookSecretRows.aged(after: last, madeBefore: madeBefore, at: now))
    }

    public func roll(
        _ secrets: StoredWebhookSecrets, to sealed: [UInt8], sealedBy key: String, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> Bool {
        try await run(
            WebhookEndpoints.rotate(
                secrets.website, from: secrets.sealed,
                to: WebhookEndpoints.Secrets(sealed: sealed, sealedBy: key),
                previousUntil: WebhookSecrets.untilFetched, at: now, by: .relay, as: operation))
    }
}

/// The ages of webhook secrets, for operators.
public struct WebhookSecretAge: Sendable, Equatable {
    /// The website's name.
    public let website: String
    public let madeAt: Timestamp
    /// When the website fetched the secret last; nil if it did not, and the relays do not replace it.
    public let fetchedAt: Timestamp?

    /// The ages of all websites with webhooks, the oldest first.
    public static let all = Query(script: Script("webhook secrets", reads: [agesOfAll()])) {
        rows throws(StoreFailure) -> [WebhookSecretAge] in
        var ages: [WebhookSecretAge] = []
        for row in rows[0] {
            ages.append(
                WebhookSecretAge(
                    website: try row.text("website_name"), madeAt: try row.timestamp("made_at"),
                    fetchedAt: try row.optionalTimestamp("fetched_at")))
        }
        return ages
    }

    private static let agesOfAll = Statement(
        """
        SELECT w.name AS website_name, ep.made_at, ep.fetched_at FROM webhook_endpoint ep
        JOIN website w ON w.id = ep.website_id WHERE w.state = 'active' AND w.webhook_url IS NOT NULL
        ORDER BY ep.made_at, w.name
        """)
}

/// The secrets of webhook endpoints, as websites fetch them and relays replace them.
private enum WebhookSecretRows {
    static func find(_ website: WebsiteID) -> Query<StoredWebhookSecrets?> {
        Query(script: Script("webhook secrets", rows: [.website(website)], reads: [ofWebsite(website: .id(website))])) {
            rows throws(StoreFailure) in try rows[0].first.map(read)
        }
    }

    /// The former secret ends as it did if the website fetches again.
    static func fetched(
        _ secrets: StoredWebhookSecrets, previousUntil: Timestamp?, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let (website, sealed) = (SQLValue.id(secrets.website), SQLValue.blob(secrets.sealed))
        let script = Script(
            "webhook secrets",
            writes: [
                auditFetch(operation: .id(operation), now: .timestamp(now), website: website, sealed: sealed),
                recordFetch(
                    now: .timestamp(now), previousUntil: .timestamp(previousUntil), website: website, sealed: sealed),
            ], reads: [hasFetched(website: website, sealed: sealed)])
        return Query(script: script) { rows in !rows[0].isEmpty }
    }

    static func aged(
        after last: StoredWebhookSecrets?, madeBefore: Timestamp, at now: Timestamp
    ) -> Query<[StoredWebhookSecrets]> {
        let (before, now) = (SQLValue.timestamp(madeBefore), SQLValue.timestamp(now))
        let read =
            if let last {
                agedAfter(
                    madeBefore: before, now: now, lastMadeAt: .timestamp(last.madeAt), lastWebsite: .id(last.website))
            } else { agedOfAll(madeBefore: before, now: now) }
        return Query(script: Script("webhook secrets", reads: [read])) { rows throws(StoreFailure) in
            var all: [StoredWebhookSecrets] = []
            for row in rows[0] { all.append(try Self.read(row)) }
            return all
        }
    }

    private static func read(_ row: Row) throws(StoreFailure) -> StoredWebhookSecrets {
        StoredWebhookSecrets(
            website: try row.id("website_id"), name: try row.text("website_name"), sealed: try row.blob("secrets"),
            previousUntil: try row.optionalTimestamp("previous_until"), madeAt: try row.timestamp("made_at"),
            fetchedAt: try row.optionalTimestamp("fetched_at"))
    }

    private static let select = """
        SELECT ep.website_id, w.name AS website_name, ep.secrets, ep.previous_until, ep.made_at, ep.fetched_at
        FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
        WHERE w.state = 'active' AND w.webhook_url IS NOT NULL
        """

    private static let ofWebsite = Statement("\(select) AND w.id = :website")

    private static let aged = """
        \(select) AND ep.fetched_at IS NOT NULL AND ep.made_at <= :madeBefore
        AND (ep.previous_until IS NULL OR ep.previous_until <= :now)
        """

    private static let inOrder = "ORDER BY ep.made_at, ep.website_id LIMIT 50"

    private static let agedOfAll = Statement("\(aged) \(inOrder)")

    private static let agedAfter = Statement(
        """
        \(aged) AND (ep.made_at > :lastMadeAt OR ep.made_at = :lastMadeAt AND ep.website_id > :lastWebsite) \(inOrder)
        """)

    /// Only the first time counts, so a website that fetches each minute does not fill the audit.
    private static let auditFetch = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id)
        SELECT :operation, :now, 'webhook.fetched', ep.website_id FROM webhook_endpoint ep
        WHERE ep.website_id = :website AND ep.secrets = :sealed AND ep.fetched_at IS NULL
        \(Audit.once)
        """)

    private static let recordFetch = Statement(
        """
        UPDATE webhook_endpoint SET fetched_at = :now, previous_until = :previousUntil
        WHERE website_id = :website AND secrets = :sealed
        """)

    private static let hasFetched = Statement(
        """
        SELECT 1 FROM webhook_endpoint WHERE website_id = :website AND secrets = :sealed AND fetched_at IS NOT NULL
        """)
}
