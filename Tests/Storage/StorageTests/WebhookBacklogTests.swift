import Domain
import Synchronization
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay
@testable import Storage

/// One website has a hundred thousand webhooks: dead, due later and due now. The cost of other websites' webhooks
/// stays the same.
@Suite(.mayBlock, .timeLimit(.minutes(10))) struct WebhookBacklogTests {
    private static let reads = Statement(
        """
        SELECT CAST(sum(variable_value) AS SIGNED) AS rows_read FROM information_schema.session_status
        WHERE variable_name LIKE 'Handler_read%' AND variable_name NOT LIKE '%deleted'
        """)

    /// The number of rows that the server reads for a script, and for nothing else.
    private final class Counted: Sendable {
        let rows = Mutex<Int64>(0)
    }

    /// Returns the number of rows that the session has read so far, including a few for this query.
    private static func looked(_ session: any Session) throws(SessionFailure) -> Int64 {
        let rows = try session.run([reads()])[0]
        return (try? rows.first?.integer("rows_read")) ?? .max / 2
    }

    private func fill(_ fixture: WebhookFixture, _ count: Int) async throws {
        let website = "x'\(Sample.id(1) as WebsiteID)'"
        try await fixture.write(
            """
            SET STATEMENT max_recursive_iterations = 1000000 FOR
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, dead_at,
            attempts)
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < \(count))
            SELECT unhex(lpad(hex(n * 7919), 32, '0')), 'webhook', 'login.decided', 0, \(website), \(website),
            '2026-11-22 00:00:00.000', '2100-01-01 00:00:00.000',
            CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN '2099-01-01 00:00:00.000' ELSE '2026-11-22 00:00:00.000' END,
            CASE n % 3 WHEN 0 THEN '2026-11-22 00:00:00.000' END, 1 FROM n
            """)
    }

    @Test func largeWebhookBacklogSlowsNoOther() async throws {
        let fixture = try WebhookFixture(.mariadb)
        for website in 1...2 { try await fixture.addWebsite(website) }
        try await fill(fixture, 100_000)
        for number in 0..<20 { try await fixture.addWebhook(number + 1_000_000_000, to: 2) }
        try await fixture.addWebhook(2_000_000_000, to: 1, after: .seconds(-86_400 * 365 * 30))
        try fixture.database.url.analyze("outbox, webhook_endpoint, website")
        let counted = Counted()
        let store = try Store.watched(at: fixture.database.url) { (steps, session) throws(SessionFailure) in
            let before = try Self.looked(session)
            let results = try session.run(steps)
            let after = try Self.looked(session)
            counted.rows.withLock { $0 += after - before }
            return results
        }
        defer { store.close() }
        func costs(_ what: String, upTo most: Int64, _ body: () async throws -> Void) async throws {
            counted.rows.withLock { $0 = 0 }
            try await body()
            let rows = counted.rows.withLock { $0 }
            #expect(rows > 0 && rows < most, "\(what): \(rows)")
        }
        try await costs("websites", upTo: 100) {
            let found = try await store.dueEndpoints(at: WebhookFixture.now)
            #expect(found.count == 2)
        }
        try await costs("lease of another", upTo: 500) {
            let leased = try await fixture.lease(of: 2, on: store)
            #expect(leased.count == 4)
        }
        try await costs("lease of its own", upTo: 500) {
            let leased = try await fixture.lease(of: 1, on: store)
            #expect(leased.count == 4)
        }
        let settled = WebhookSettlement(
            website: Sample.id(2), url: WebhookFixture.url, relay: Sample.id(1), at: WebhookFixture.now,
            effects: [.retry(Sample.id(1_000_000_000), at: Sample.later, failures: 1)], reason: nil, tried: .failed)
        try await costs("settle", upTo: 100) { _ = try await store.settle(settled, as: fixture.operations.new()) }
        let lease = OutboxLease(
            id: Sample.id(1), relay: Sample.id(1), now: WebhookFixture.now, leasedUntil: Sample.later,
            messagesLeasedUntil: Sample.later, limit: 100)
        try await costs("everything else that is due", upTo: 100) { _ = try await store.lease(lease) }
        // A third of them is due later. Each is read a few times, not once for every other one.
        let recovered = WebhookSettlement(
            website: Sample.id(1), url: WebhookFixture.url, relay: Sample.id(1), at: WebhookFixture.now,
            effects: [.recovered],
            reason: nil,
            tried: .nothing)
        try await costs("all of them hastened", upTo: 300_000) {
            _ = try await store.settle(recovered, as: fixture.operations.new())
        }
    }
}
