import Domain
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay
@testable import Storage

/// The outcomes of webhooks, and their effects on the health of the website's endpoint.
struct WebhookSettlementTests {
    private func call(_ number: Int) -> OutboxEntryID { Sample.id(number) }

    private func `where`(_ number: Int) -> String { "id = x'\(call(number))'" }

    @Test(arguments: Engine.allCases) func settlementAppliesEachEffect(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for number in 10..<14 { try await fixture.addWebhook(number, attempts: 2) }
        #expect(try await fixture.lease().count == 4)
        let due = WebhookFixture.now + .seconds(300)
        // Twice, because a relay that does not know whether the change was written repeats it.
        for _ in 0..<2 {
            try await fixture.settle([.delivered(call(10))])
            try await fixture.settle([.retry(call(11), at: due, failures: 3)], reason: "answered 500")
            try await fixture.settle([.suspended(call(12), failures: 2)], reason: "gone (410)")
            try await fixture.settle([.dead(call(13), failures: 8)], reason: "no answer in time")
        }
        #expect(try await fixture.count("outbox", where: "kind = 'webhook'") == 3)
        #expect(try await fixture.count("outbox", where: "holder IS NOT NULL OR lease IS NOT NULL") == 0)
        let rows = try await fixture.read("SELECT attempts, webhook_due_at, dead_at, reason FROM outbox ORDER BY id")
        let moments = [due, WebhookFixture.now, nil]
        for (row, moment) in zip(rows, moments) { #expect(try row.optionalTimestamp("webhook_due_at") == moment) }
        #expect(try rows.map { row in try row.integer("attempts") } == [3, 2, 8])
        #expect(try rows.map { row in try row.text("reason") } == ["answered 500", "gone (410)", "no answer in time"])
        #expect(try rows[2].timestamp("dead_at") == WebhookFixture.now)
        #expect(
            try await fixture.count("audit", where: "event = 'webhook.dead' AND outcome = 'no answer in time'") == 1)
        #expect(try await fixture.count("audit", where: "event LIKE 'webhook.%'") == 1)
    }

    /// A relay that was declared dead continues, with outcomes to record.
    @Test(arguments: Engine.allCases) func webhookLeasedByAnotherRelayIsNotSettled(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for number in 10..<14 { try await fixture.addWebhook(number) }
        #expect(try await fixture.lease(by: 1).count == 4)
        #expect(try await fixture.lease(by: 2, after: .seconds(31)).count == 4)
        let later = WebhookFixture.now + .seconds(300)
        try await fixture.settle([.retry(call(10), at: later, failures: 1)], by: 1, .failed)
        try await fixture.settle([.dead(call(11), failures: 8)], by: 1, .failed)
        try await fixture.settle([.suspended(call(12), failures: 0)], by: 1)
        #expect(try await fixture.count("outbox", where: "holder = x'\(Sample.id(2) as RelayID)'") == 4)
        #expect(
            try await fixture.count("webhook_endpoint", where: "failed_attempts = 0 AND failing_since IS NULL") == 1)
        #expect(try await fixture.count("audit", where: "1 = 1") == 0)
        // But a delivery is recorded even so.
        try await fixture.settle([.delivered(call(13))], by: 1, .delivered)
        #expect(try await fixture.count("outbox", where: `where`(13)) == 0)
    }

    @Test(arguments: Engine.allCases) func attemptsAreCountedOnce(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for number in 10..<13 { try await fixture.addWebhook(number) }
        _ = try await fixture.lease()
        for number in 10..<12 {
            for _ in 0..<2 {
                try await fixture.settle(
                    [.retry(call(number), at: WebhookFixture.now + .seconds(60), failures: 1)], after: .seconds(number),
                    .failed)
            }
        }
        let place = EndpointRevision(url: WebhookFixture.url, operation: Sample.id(1))
        let standing = WebhookHealth(.failing(since: WebhookFixture.now + .seconds(10), attempts: 2))
        #expect(
            try await fixture.store.dueEndpoints(at: WebhookFixture.now + .seconds(60))
                == [DueEndpoint(id: Sample.id(1), standing: standing, place: place)])
        try await fixture.settle([.delivered(call(12))], after: .seconds(20), .delivered)
        #expect(
            try await fixture.store.dueEndpoints(at: WebhookFixture.now + .seconds(60))
                == [DueEndpoint(id: Sample.id(1), standing: WebhookHealth(), place: place)])
    }

    /// Several relays find at the same time that nothing was delivered for days. One of them reports it.
    @Test(arguments: Engine.allCases) func endpointIsDisabledOnce(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        for website in 1...2 { try await fixture.addWebsite(website) }
        for number in 10..<14 { try await fixture.addWebhook(number) }
        _ = try await fixture.lease()
        let days = WebhookHealth.timeout + .seconds(1)
        // In the store, the failures are too few or too recent.
        try await fixture.write(
            "UPDATE webhook_endpoint SET failed_attempts = \(WebhookHealth.fewestTries - 2), failing_since = '\(WebhookFixture.now.sql)'"
        )
        func failed(_ number: Int, after delay: Duration) async throws -> Bool {
            try await fixture.settle(
                [.suspended(call(number), failures: 1), .disabled(.failures)], after: delay, .failed)
        }
        #expect(try await failed(10, after: days) == false)
        #expect(try await failed(11, after: .seconds(60)) == false)
        #expect(
            try await fixture.count(
                "webhook_endpoint", where: "state = 'active' AND failed_attempts = \(WebhookHealth.fewestTries)") == 1)
        #expect(try await failed(12, after: days))
        #expect(try await failed(13, after: days) == false)
        let disabled = try await fixture.read(
            "SELECT disabled_by, disabled_at FROM webhook_endpoint WHERE state = 'disabled'")
        #expect(try disabled.map { row in try row.text("disabled_by") } == ["failures"])
        #expect(try disabled.first?.timestamp("disabled_at") == WebhookFixture.now + days)
        #expect(
            try await fixture.count("audit", where: "event = 'webhook.disabled' AND outcome = 'failures'") == 1)
        #expect(try await fixture.websites(after: days) == [])
        // They wait until the endpoint is enabled.
        #expect(try await fixture.count("outbox", where: "dead_at IS NULL AND holder IS NULL") == 4)
    }

    /// The URL of the website changed during the attempts.
    @Test(arguments: Engine.allCases) func answerOfTheOldURLDoesNotCountAgainstTheNew(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for number in 10..<12 { try await fixture.addWebhook(number) }
        _ = try await fixture.lease()
        let former = "https://shop.example/former"
        try await fixture.settle([.retry(call(10), at: WebhookFixture.now, failures: 1)], at: former, .failed)
        #expect(
            try await fixture.settle([.suspended(call(11), failures: 0), .disabled(.unsubscribed)], at: former) == false
        )
        #expect(
            try await fixture.count(
                "webhook_endpoint", where: "state = 'active' AND failed_attempts = 0 AND failing_since IS NULL") == 1)
        #expect(try await fixture.count("audit", where: "event = 'webhook.disabled'") == 0)
        // They can be attempted again.
        #expect(try await fixture.lease().sorted() == [10, 11])
    }

    /// The same settlement, repeated because its commit is unknown, reports again that it disabled the endpoint.
    @Test(arguments: Engine.allCases) func status410DisablesTheEndpoint(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        try await fixture.addWebhook(10)
        _ = try await fixture.lease()
        let operation = fixture.operations.new()
        let effects: [WebhookSettlement.Effect] = [.suspended(call(10), failures: 0), .disabled(.unsubscribed)]
        #expect(try await fixture.settle(effects, as: operation))
        #expect(try await fixture.settle(effects, as: operation))
        #expect(try await fixture.settle(effects) == false)
        #expect(try await fixture.count("audit", where: "event = 'webhook.disabled' AND outcome = 'unsubscribed'") == 1)
        #expect(
            try await fixture.count("webhook_endpoint", where: "state = 'disabled' AND disabled_by = 'unsubscribed'")
                == 1
        )
        // But it does not disable an endpoint that an operator has enabled meanwhile.
        let enabled = try await fixture.store.run(
            WebhookEndpoints.enable(Sample.id(1), at: WebhookFixture.now, as: fixture.operations.new()))
        #expect(enabled)
        _ = try await fixture.settle(effects, as: operation)
        #expect(try await fixture.count("webhook_endpoint", where: "state = 'active' AND disabled_by IS NULL") == 1)
        #expect(try await fixture.count("audit", where: "event = 'webhook.disabled'") == 1)
    }

    /// More webhooks wait than one transaction writes. Leased webhooks and those of other websites are left alone.
    @Test(arguments: Engine.allCases) func recoveryMakesWaitingWebhooksDue(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        for website in 1...2 { try await fixture.addWebsite(website) }
        try await fixture.addRelay(2)
        for number in 10..<13 { try await fixture.addWebhook(number) }
        try await fixture.addWebhook(20, to: 2, after: .seconds(60))
        let held = try await fixture.lease(by: 2, limit: 1)
        let arrived = held == [12] ? 11 : 12
        #expect(held.count == 1)
        let some = WebhookFixture.now.sql
        try await fixture.write(
            """
            /*M! SET STATEMENT max_recursive_iterations = 10000 FOR */
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts)
            WITH RECURSIVE n (n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM n WHERE n < 101199)
            SELECT \(engine == .mariadb ? "lpad(n, 16, '0')" : "CAST(printf('%016d', n) AS BLOB)"), 'webhook',
            'login.decided', 0, x'\(Sample.id(1) as UserID)', x'\(Sample.id(1) as WebsiteID)', '\(some)', '\(some)',
            '2100-01-01 00:00:00.000', 1 FROM n
            """)
        try await fixture.settle([.delivered(call(arrived)), .recovered], by: 1, after: .seconds(1), .delivered)
        let shop = "website_id = x'\(Sample.id(1) as WebsiteID)'"
        #expect(
            try await fixture.count("outbox", where: "\(shop) AND holder IS NULL AND webhook_due_at <= '\(some)'")
                >= 1200
        )
        #expect(
            try await fixture.count("outbox", where: "\(shop) AND holder IS NULL AND webhook_due_at > '\(some)'") == 0)
        #expect(
            try await fixture.count("outbox", where: "\(shop) AND holder IS NOT NULL AND webhook_due_at > '\(some)'")
                == 1
        )
        #expect(try await fixture.lease(of: 2, after: .seconds(2)) == [])
        // The next attempt of each does not count.
        #expect(try await fixture.count("outbox", where: "\(shop) AND attempts > 0") == 0)
    }

    /// The endpoint counts as failing until all waiting webhooks are due. If this is interrupted, the next delivery
    /// does it again.
    @Test(arguments: [Engine.file, .mariadb]) func interruptedRecoveryIsRepeated(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        for number in 10..<12 { try await fixture.addWebhook(number) }
        _ = try await fixture.lease()
        try await fixture.addWebhook(20, after: .seconds(3600), attempts: 5)
        try await fixture.write(
            "UPDATE webhook_endpoint SET failing_since = '\(WebhookFixture.now.sql)', failed_attempts = 9")
        let store = try Store.watched(at: fixture.database.url) { (steps, session) throws(SessionFailure) in
            if steps.contains(where: { $0.statement.sql.contains("attempts - 1") }) { throw .refused("cut") }
            return try session.run(steps)
        }
        defer { store.close() }
        let arrived = WebhookSettlement(
            website: Sample.id(1), url: WebhookFixture.url, relay: Sample.id(1), at: WebhookFixture.now + .seconds(600),
            effects: [.delivered(call(10)), .recovered], reason: nil, tried: .delivered)
        #expect(try await store.settle(arrived, as: fixture.operations.new()) == false)
        #expect(try await fixture.count("outbox", where: `where`(10)) == 0)
        #expect(
            try await fixture.count("webhook_endpoint", where: "failed_attempts = 9 AND failing_since IS NOT NULL") == 1
        )
        #expect(try await fixture.count("outbox", where: "\(`where`(20)) AND attempts = 5") == 1)
        try await fixture.settle([.delivered(call(11)), .recovered], after: .seconds(700), .delivered)
        #expect(
            try await fixture.count("webhook_endpoint", where: "failed_attempts = 0 AND failing_since IS NULL") == 1)
        #expect(try await fixture.lease(after: .seconds(700)) == [20])
    }

    /// A webhook that fails while the others are made due waits as long as after any failure.
    @Test(arguments: Engine.allCases) func failedWebhookIsNotMadeDueTwice(_ engine: Engine) async throws {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        let (some, shop) = (WebhookFixture.now.sql, "x'\(Sample.id(1) as WebsiteID)'")
        let (id, moment) =
            engine == .mariadb
            ? ("lpad(n, 16, '0')", "CAST('2027-02-01' AS datetime) + INTERVAL n SECOND")
            : ("CAST(printf('%016d', n) AS BLOB)", "strftime('%Y-%m-%d %H:%M:%S.000', '2027-02-01', n || ' seconds')")
        try await fixture.write(
            """
            /*M! SET STATEMENT max_recursive_iterations = 10000 FOR */
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts)
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)
            SELECT \(id), 'webhook', 'login.decided', 0, \(shop), \(shop), '\(some)', '2100-01-01 00:00:00.000',
            \(moment), 6 FROM n
            """)
        let later = "webhook_due_at > '\(some)'"
        var next: Timestamp? = WebhookRows.farthest
        var rounds = 0
        while let upTo = next, rounds < 10 {
            next = try await fixture.store.run(WebhookRows.makeDue(Sample.id(1), at: WebhookFixture.now, upTo: upTo))
            rounds += 1
            // All of these are attempted and fail.
            try await fixture.write(
                "UPDATE outbox SET attempts = 6, webhook_due_at = '2027-02-02 00:00:00.000', reason = 'anew' WHERE NOT \(later)"
            )
        }
        #expect(rounds == 3)
        #expect(try await fixture.count("outbox", where: "\(later) AND attempts = 6 AND reason = 'anew'") == 1200)
    }
}
