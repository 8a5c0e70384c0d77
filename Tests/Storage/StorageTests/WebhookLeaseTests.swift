import Domain
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay
@testable import Storage

/// The leases of webhooks.
struct WebhookLeaseTests {
    @Test(arguments: Engine.allCases) func oldestDueWebhooksAreLeasedOnce(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        for website in 1...3 { try await fixture.addWebsite(website) }
        try await fixture.addRelay(1)
        for number in 10..<16 { try await fixture.addWebhook(number, after: .seconds(number - 20)) }
        try await fixture.addWebhook(20, after: .seconds(1))
        try await fixture.addWebhook(30, to: 2)
        try await fixture.addWebhook(31, to: 3, after: .seconds(1))
        #expect(try await fixture.websites() == [1, 2])
        #expect(Set(try await fixture.lease()) == [10, 11, 12, 13])
        #expect(Set(try await fixture.lease()) == [14, 15])
        #expect(try await fixture.lease() == [])
        #expect(try await fixture.lease(of: 2) == [30])
        #expect(try await fixture.websites() == [])
        #expect(try await fixture.websites(after: .seconds(1)) == [1, 3])
        // The lease of other outbox entries does not take them.
        let lease = OutboxLease(
            id: Sample.id(1), relay: Sample.id(1), now: WebhookFixture.now + .seconds(60), leasedUntil: Sample.later,
            messagesLeasedUntil: Sample.later, limit: 100)
        #expect(try await fixture.store.lease(lease).rows.isEmpty)
    }

    /// A living relay keeps its webhooks. Others take the webhooks of a dead relay when it is declared dead, or
    /// when the lease ends.
    @Test(arguments: Engine.allCases) func webhooksOfADeadRelayAreLeasedByOthers(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for relay in 1...2 { try await fixture.addRelay(relay) }
        try await fixture.addWebhook(10)
        #expect(try await fixture.lease(by: 1) == [10])
        let over = WebhookFixture.lease + .seconds(1)
        #expect(try await fixture.lease(by: 2, after: over) == [])
        #expect(try await fixture.lease(by: 1, after: over) == [10])
        try await fixture.store.removeDeadRelay(Sample.id(1), at: nil, now: WebhookFixture.now)
        #expect(try await fixture.lease(by: 2) == [10])
        // Relay 3 was declared dead before it leased the webhook.
        try await fixture.addWebhook(11)
        #expect(try await fixture.lease(by: 3) == [11])
        #expect(try await fixture.lease(by: 2) == [])
        #expect(try await fixture.lease(by: 2, after: over).contains(11))
        // Released webhooks are due only by `webhook_due_at`.
        #expect(try await fixture.count("outbox", where: "due_at IS NOT NULL") == 0)
    }

    @Test(arguments: Engine.allCases) func laterWebhookWaitsForTheChallengesEnd(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for end in [10, 20, 30] {
            try await fixture.addWebhook(end + 1, challenge: end, place: 1, after: .seconds(-1))
            try await fixture.addWebhook(end, challenge: end)
        }
        // One at a time: a webhook that waits does not block others.
        #expect(
            Set(try await fixture.lease(limit: 1) + fixture.lease(limit: 1) + fixture.lease(limit: 1)) == [10, 20, 30])
        #expect(try await fixture.lease() == [])
        let due = WebhookFixture.now + .seconds(5)
        try await fixture.settle([.delivered(Sample.id(10))])
        try await fixture.settle([.dead(Sample.id(20), failures: 8)])
        try await fixture.settle([.retry(Sample.id(30), at: due, failures: 1)])
        #expect(Set(try await fixture.lease()) == [11, 21])
        #expect(try await fixture.websites(after: .seconds(4)) == [])
        #expect(try await fixture.lease(after: .seconds(5)) == [30])
    }

    @Test(arguments: Engine.allCases) func disabledEndpointHasNoDueWebhooks(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        for website in 1...3 {
            try await fixture.addWebsite(website)
            try await fixture.addWebhook(website * 10, to: website)
        }
        try await fixture.write(
            "UPDATE webhook_endpoint SET state = 'disabled' WHERE website_id = x'\(Sample.id(1) as WebsiteID)'")
        try await fixture.write("UPDATE website SET state = 'disabled' WHERE id = x'\(Sample.id(2) as WebsiteID)'")
        #expect(try await fixture.websites() == [3])
        for website in 1...2 { #expect(try await fixture.lease(of: website) == []) }
        #expect(try await fixture.lease(of: 3) == [30])
    }

    @Test(arguments: Engine.allCases) func leasedWebhookContainsItsData(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        let (store, url) = (fixture.store, fixture.database.url)
        try await Sample.fill(store, at: url)
        try await fixture.write("UPDATE website SET webhook_url = 'https://shop.example/hook', name = 'mill'")
        try await fixture.write("DELETE FROM recovery")
        try await fixture.write(
            """
            INSERT INTO webhook_endpoint SELECT id, x'0102', 'key', '2026-11-22 09:00:00.000', 'active', NULL, NULL, NULL, 0, id, '2026-11-22 09:00:00.000', NULL
            FROM website
            """)
        #expect(try await Sample.approve(7, on: store, as: fixture.operations.new()) != nil)
        var change = DeviceChange(Sample.id(7), of: Sample.id(7), by: .website, at: Sample.now)
        change.state = .revoked
        _ = try await store.change(change, as: fixture.operations.new())
        let rows = try await fixture.rows()
        #expect(rows.map(\.event).sorted() == ["device.unbound", "login.decided"])
        for row in rows {
            #expect(row.url == "https://shop.example/hook" && row.websiteName == "mill" && row.secrets == [1, 2])
            #expect(row.website == Sample.website && row.previousUntil == Timestamp(sql: "2026-11-22 09:00:00.000"))
            #expect(row.user == Sample.id(7) && row.token == Sample.id(7) && row.failures == 0)
            #expect(row.createdAt == Sample.now && row.expiresAt == Sample.now + WebhookRows.life)
        }
        let login = try #require(rows.first { $0.event == "login.decided" })
        #expect(login.id.bytes == (Sample.id(7) as ChallengeID).bytes && login.place == 0 && login.device == nil)
        #expect(try await login.challenge == store.challenge(Sample.id(7), of: Sample.website))
        #expect(login.challenge?.steps.isEmpty == false)
        let unbound = try #require(rows.first { $0.event == "device.unbound" })
        #expect(unbound.challenge == nil && unbound.place == 1)
        let device = try #require(unbound.device)
        // One engine pads the column.
        #expect(device.id == Sample.id(7) && device.platform == .ios && device.publicKey?.first == 4)
        #expect(device.name == nil && device.binding == nil)
    }

    /// Two relays lease at the same time. Each webhook is leased by one of them.
    @Test(.mayBlock) func twoRelaysNeverLeaseTheSameWebhook() async throws {
        let fixture = try WebhookFixture(.mariadb)
        let other = try fixture.database.open(options: .patient)
        defer { other.close() }
        try await fixture.addWebsite(1)
        for relay in 1...2 { try await fixture.addRelay(relay) }
        for number in 100..<140 { try await fixture.addWebhook(number) }
        var taken: [Int] = []
        while true {
            async let one = fixture.lease(by: 1)
            async let two = fixture.lease(by: 2, on: other)
            let both = try await one + two
            if both.isEmpty { break }
            taken += both
        }
        #expect(taken.sorted() == Array(100..<140))
    }

    @Test(arguments: Engine.allCases) func webhookBacklogIsCounted(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        #expect(
            try await fixture.store.webhookBacklog(at: WebhookFixture.now)
                == WebhookBacklog(oldestDue: nil, dead: 0, disabled: 0, websites: 0))
        for website in 1...2 { try await fixture.addWebsite(website) }
        try await fixture.addWebhook(10, after: .seconds(-7))
        try await fixture.addWebhook(11, after: .seconds(-9))
        try await fixture.addWebhook(20, to: 2, after: .seconds(-60))
        try await fixture.write(
            "UPDATE webhook_endpoint SET state = 'disabled' WHERE website_id = x'\(Sample.id(2) as WebsiteID)'")
        #expect(
            try await fixture.store.webhookBacklog(at: WebhookFixture.now)
                == WebhookBacklog(oldestDue: WebhookFixture.now - .seconds(9), dead: 0, disabled: 1, websites: 2))
        // Dead webhooks, of both websites.
        for number in [10, 11, 20] {
            try await fixture.write(
                """
                UPDATE outbox SET dead_at = '2026-11-22 00:00:00.000', webhook_due_at = NULL WHERE id = x'\(Sample.id(number)
                as OutboxEntryID)'
                """)
        }
        #expect(
            try await fixture.store.webhookBacklog(at: WebhookFixture.now)
                == WebhookBacklog(oldestDue: nil, dead: 3, disabled: 1, websites: 2))
        // A webhook that is due later is not overdue.
        try await fixture.addWebhook(12, after: .seconds(1))
        #expect(try await fixture.store.webhookBacklog(at: WebhookFixture.now).oldestDue == nil)
    }
}
