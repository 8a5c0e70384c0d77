import Bytes
import Domain
import TestSupport
import Webhooks
import World

@testable import Relay
@testable import Storage

/// A store with websites that have webhooks, identified by numbers.
final class WebhookFixture: Sendable {
    static let now = Sample.now
    /// The webhook URL of the websites.
    static let url = "https://shop.example/hook"
    static let lease = Duration.seconds(30)

    let database: TestDatabase
    let store: Store
    let operations = Operations(
        masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())

    init(_ engine: Engine) throws {
        database = try engine.database(Migration.all)
        store = try database.open(options: .patient)
    }

    deinit { store.close() }

    private static let insertWebsite = Statement(
        """
        INSERT INTO website
        VALUES (:website, :name, 'Shop', 'active', '{}', 'https://shop.example/hook', :now, :operation, NULL)
        """)
    private static let insertUser = Statement(
        """
        INSERT INTO user (id, token, website_id, username, state, created_at, operation)
        VALUES (:user, :token, :website, 'ada', 'active', :now, :operation)
        """)
    private static let insertEndpoint = Statement(
        """
        INSERT INTO webhook_endpoint
        VALUES (:website, x'0102', 'key', NULL, 'active', NULL, NULL, NULL, 0, :operation, '2026-11-22 09:00:00.000', NULL)
        """)
    private static let insertRelay = Statement("INSERT INTO relay VALUES (:relay, 0, :now)")
    private static let insertWebhook = Statement(
        """
        INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, challenge_id, created_at, expires_at, webhook_due_at,
        attempts)
        VALUES (:entry, 'webhook', 'login.decided', :ordinal, :user, :website, :challenge, :now, :expiresAt, :dueAt, :attempts)
        """)

    func write(_ statement: BoundStatement) async throws {
        _ = try await store.run(Script("test", writes: [statement]))
    }

    func write(_ sql: String) async throws { try await write(Statement(sql)()) }

    /// Runs one read and returns its rows.
    func read(_ sql: String) async throws -> Rows {
        try await store.run(Script("test", reads: [Statement(sql)()]))[0]
    }

    func count(_ table: String, where condition: String) async throws -> Int64 {
        try await read("SELECT count(*) AS count FROM \(table) WHERE \(condition)").first?.integer("count") ?? -1
    }

    /// Adds a website with a webhook URL and one user, all with the same number.
    func addWebsite(_ number: Int) async throws {
        let (id, now) = (SQLValue.id(Sample.id(number) as WebsiteID), SQLValue.timestamp(Self.now))
        try await write(Self.insertWebsite(website: id, name: .text("shop-\(number)"), now: now, operation: id))
        try await write(Self.insertUser(user: id, token: id, website: id, now: now, operation: id))
        try await write(Self.insertEndpoint(website: id, operation: id))
    }

    func addRelay(_ number: Int) async throws {
        try await write(Self.insertRelay(relay: .id(Sample.id(number) as RelayID), now: .timestamp(Self.now)))
    }

    /// - Parameter challenge: the challenge; nil for the webhook's own number, which reports the end of that
    ///   challenge.
    func addWebhook(
        _ number: Int, to website: Int = 1, challenge: Int? = nil, place: Int = 0, after delay: Duration = .zero,
        attempts: Int = 0
    ) async throws {
        let (user, created) = (Sample.id(website) as UserID, SQLValue.timestamp(Self.now))
        try await write(
            Self.insertWebhook(
                entry: .id(Sample.id(number) as OutboxEntryID), ordinal: .integer(Int64(place)), user: .id(user),
                website: .id(user), challenge: .id(challenge.map { Sample.id($0) as ChallengeID }), now: created,
                expiresAt: .timestamp(Self.now + WebhookRows.life), dueAt: .timestamp(Self.now + delay),
                attempts: .integer(Int64(attempts))))
    }

    /// Leases webhooks, and returns their numbers.
    func lease(
        by relay: Int = 1, of website: Int = 1, after delay: Duration = .zero, limit: Int = 4, on store: Store? = nil
    ) async throws -> [Int] {
        try await rows(by: relay, of: website, after: delay, limit: limit, on: store).map { Self.number(of: $0.id) }
    }

    func rows(
        by relay: Int = 1, of website: Int = 1, after delay: Duration = .zero, limit: Int = 4, on store: Store? = nil
    ) async throws -> [WebhookRow] {
        let now = Self.now + delay
        return try await (store ?? self.store).leaseWebhooks(
            WebhookLease(
                id: operations.draw(), relay: Sample.id(relay), website: Sample.id(website), now: now,
                leasedUntil: now + Self.lease, limit: limit)
        ).rows
    }

    /// Returns the numbers of the websites that have due webhooks.
    func websites(after delay: Duration = .zero) async throws -> [Int] {
        try await store.dueEndpoints(at: Self.now + delay).map { Self.number(of: $0.id) }.sorted()
    }

    @discardableResult
    func settle(
        _ effects: [WebhookSettlement.Effect], by relay: Int = 1, of website: Int = 1,
        at url: String = WebhookFixture.url,
        after delay: Duration = .zero, _ tried: WebhookSettlement.EndpointResult = .nothing, reason: String? = nil,
        as operation: Domain.Operation? = nil
    ) async throws -> Bool {
        try await store.settle(
            WebhookSettlement(
                website: Sample.id(website), url: url, relay: Sample.id(relay), at: Self.now + delay, effects: effects,
                reason: reason, tried: tried), as: operation ?? operations.new())
    }

    static func number<Thing>(of id: Identifier<Thing>) -> Int { id.bytes.suffix(8).reduce(0) { $0 << 8 | Int($1) } }
}
