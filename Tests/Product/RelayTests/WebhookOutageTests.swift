import Domain
import Log
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay

/// A website that does not accept its webhooks: the relay retries, pauses or disables the endpoint, and
/// loses no webhook.
@Suite(.mayBlock) struct WebhookOutageTests {
    /// After the outage every webhook arrives, under its earlier id, and those of one challenge in order.
    @Test(arguments: [StoreKind.memory, .mariadb]) func dayLongOutageLosesNoWebhook(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        website.answer(.unanswered(.unreachable))
        var (ends, frauds): ([String], [String]) = ([], [])
        for hour in 0..<24 {
            ends.append(try await fixture.cancelled().text)
            if hour % 8 == 0 { frauds.append(try await fixture.fraud().text) }
            for _ in 0..<12 { try await rig.webhookRound(after: .seconds(300)) }
        }
        #expect(website.arrived.isEmpty)
        #expect(try fixture.left() == 24 + 2 * 3)
        #expect(try fixture.left("dead_at IS NOT NULL") == 0)
        website.answer(.answered(status: 204))
        // The next attempt succeeds, and then all webhooks are due at once.
        var rounds = 0
        while try fixture.left() > 0, rounds < 12 * 13 {
            try await rig.webhookRound(after: .seconds(300))
            rounds += 1
        }
        #expect(try fixture.left() == 0)
        let decided = website.arrived.filter { $0.type == "login.decided" }
        #expect(decided.count == 27 && Set(decided.map(\.id.text)) == Set(ends + frauds))
        #expect(decided.allSatisfy { $0.id.text == $0.challenge })
        for challenge in frauds {
            let reported = website.arrived.filter { $0.challenge == challenge }.map(\.type)
            #expect(reported == ["login.decided", "user.frozen"])
        }
        // The earlier attempts had the same id and the same body.
        #expect(Set(website.came.map(\.id)) == Set(website.arrived.map(\.id)))
        #expect(website.came.count > 2 * website.arrived.count)
        for webhook in website.arrived {
            #expect(website.came.filter { $0.id == webhook.id }.allSatisfy { $0.body == webhook.body })
        }
        #expect(fixture.counted("dead") == 0)
        let lines = rig.sink.drain()
        #expect(lines.filter { $0.contains("event=webhook.recovered ") }.count == 1)
        #expect(!lines.contains { $0.contains("event=webhook.disabled") })
    }

    /// The website accepts one webhook and is down again. The others lose no attempt by that.
    @Test func briefRecoveryConsumesNoAttempts() async throws {
        let fixture = try await WebhookFixture(.memory)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 500))
        try await fixture.cancelled()
        try rig.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts)
            SELECT randomblob(16), kind, 'user.locked', 1, user_id, website_id, created_at, expires_at, webhook_due_at, 0
            FROM outbox, n WHERE kind = 'webhook'
            """)
        for _ in 0..<(10 * 12) { try await rig.webhookRound(after: .seconds(300)) }
        // Each has two attempts left, and the next one is hours away.
        #expect(try fixture.left("attempts = 6 AND dead_at IS NULL") == 50)
        // The relay may send a webhook as soon as a login ends. The courier's answer must be set before that.
        rig.relay.replace(nil)
        let stray = try await fixture.cancelled().text
        rig.webhooks.answerOtherwise { .answered(status: $0.id.text == stray ? 200 : 500) }
        rig.relay.replace(rig.webhooks)
        let before = rig.webhooks.sent.count
        try await rig.webhookRound(after: .seconds(1))
        try await rig.webhookRound(after: .seconds(1))
        #expect(fixture.counted("delivered") == 1)
        #expect(rig.webhooks.sent.count == before + 51)
        for _ in 0..<(13 * 12) { try await rig.webhookRound(after: .seconds(300)) }
        #expect(try fixture.left("dead_at IS NULL") == 50)
        #expect(fixture.counted("dead") == 0)
    }

    @Test(arguments: StoreKind.all) func endpointThatAnswers410StaysDisabledUntilEnabled(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        for _ in 0..<6 { try await fixture.cancelled() }
        website.answer(.answered(status: 410))
        try await rig.webhookRound(after: .zero)
        let tried = website.came.count
        #expect((1...4).contains(tried))
        #expect(fixture.counted("unsubscribed") == Double(tried))
        website.answer(.answered(status: 200))
        for _ in 0..<24 { try await rig.webhookRound(after: .seconds(3600)) }
        #expect(website.came.count == tried)
        #expect(try fixture.left("dead_at IS NULL") == 6)
        let lines = fixture.lines(of: "webhook.disabled")
        #expect(lines.count == 1 && lines[0].contains("level=error") && lines[0].contains("website=shop"), "\(lines)")
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.disabled'") == 1)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_webhook_disabled_websites") == 1)
        #expect(try await fixture.enable())
        try await rig.webhookRound(after: .seconds(1))
        #expect(try website.arrived.count == 6 && fixture.left() == 0)
    }

    /// With two relays, one of them reports it, once.
    @Test(arguments: [StoreKind.memory, .mariadb]) func endpointDownForThreeDaysIsDisabled(kind: StoreKind) async throws
    {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 500))
        let other = try rig.relay(over: rig.store)
        for _ in 0..<(4 * 24) {
            try await fixture.cancelled()
            rig.time.advance(by: .seconds(3600))
            try await rig.on { relay in
                for relay in [relay, other] { await relay.runHeartbeat() }
                for relay in [relay, other] { await relay.deliverWebhooks() }
            }
            await rig.settled()
        }
        #expect(fixture.lines(of: "webhook.disabled").count == 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.disabled'") == 1)
        #expect(try rig.text("SELECT disabled_by FROM webhook_endpoint") == "failures")
        let tried = website.came.count
        #expect(tried >= WebhookHealth.fewestTries)
        website.answer(.answered(status: 200))
        for _ in 0..<24 { try await rig.webhookRound(after: .seconds(3600)) }
        #expect(website.came.count == tried && website.arrived.isEmpty)
        // Webhooks that are not dead by then wait for the operator.
        let waiting = try fixture.left("dead_at IS NULL")
        #expect(try waiting > 0 && fixture.left() == 4 * 24)
        #expect(try await fixture.enable())
        try await rig.webhookRound(after: .seconds(1))
        #expect(website.arrived.count == Int(waiting))
    }

    @Test(arguments: StoreKind.all) func webhookIsDeadAfterEightAttempts(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let dead = try await fixture.cancelled().text
        // The website accepts all other webhooks, and refuses only this one.
        rig.webhooks.answerOtherwise { .answered(status: $0.id.text == dead ? 400 : 200) }
        for round in 0..<(48 * 6) {
            if round % 36 == 35 { try await fixture.cancelled() }
            try await rig.webhookRound(after: .seconds(600))
        }
        // One more attempt does not count: when the first of the others arrived after an outage, all webhooks
        // became due at once.
        #expect(rig.webhooks.sent.filter { $0.id.text == dead }.count == 8 + 1)
        #expect(fixture.counted("delivered") == 8 && rig.webhooks.sent.count == 16 + 1)
        #expect(try fixture.left("dead_at IS NOT NULL AND webhook_due_at IS NULL AND reason = 'answered 400'") == 1)
        #expect(fixture.counted("dead") == 1 && fixture.counted("failed") == 7 + 1)
        let lines = rig.sink.drain()
        #expect(lines.filter { $0.contains("level=error event=webhook.dead ") }.count == 1)
        #expect(lines.filter { $0.contains("level=warning event=webhook.failed ") }.count == 7 + 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.dead'") == 1)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_webhook_dead_letters") == 1)
    }

    /// The old URL had requested the pause.
    @Test(arguments: StoreKind.all) func newWebhookURLIsUsedAtOnce(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 429, retryAfter: .seconds(3600)))
        try await fixture.cancelled()
        try await rig.webhookRound(after: .zero)
        website.answer(.answered(status: 200))
        try await fixture.cancelled()
        try await rig.webhookRound(after: .seconds(60))
        #expect(website.came.count == 1)
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example/new' WHERE id = x'\(fixture.shop.id)'")
        try await rig.webhookRound(after: .seconds(1))
        #expect(website.arrived.map(\.url) == ["https://shop.example/new"])
        // The first webhook waits until its planned time; the operator's tool makes it due.
        #expect(try fixture.left("attempts = 1") == 1)
    }

    @Test(arguments: StoreKind.all) func retryAfterIsRespected(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 429, retryAfter: .seconds(600)))
        for _ in 0..<6 { try await fixture.cancelled() }
        try await rig.webhookRound(after: .zero)
        let tried = website.came.count
        #expect((1...4).contains(tried))
        website.answer(.answered(status: 200))
        for _ in 0..<9 {
            try await fixture.cancelled()
            try await rig.webhookRound(after: .seconds(60))
        }
        #expect(website.came.count == tried)
        // By then each has waited for the requested time and a quarter more.
        for _ in 0..<4 { try await rig.webhookRound(after: .seconds(60)) }
        #expect(try website.arrived.count == 15 && fixture.left() == 0)
    }
}
