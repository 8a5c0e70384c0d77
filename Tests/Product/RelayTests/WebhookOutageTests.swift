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
    /// It is back, and everything comes: under the ids that were tried before, and what belongs together in its order.
    @Test(arguments: [StoreKind.memory, .mariadb]) func dayLongOutageLosesNoWebhook(kind: StoreKind) async throws {
        let scene = try await WebhookFixture(kind)
        let rig = scene.rig
        let website = Receiver(rig.webhooks)
        website.answer(.unanswered(.unreachable))
        var (ends, frauds): ([String], [String]) = ([], [])
        for hour in 0..<24 {
            ends.append(try await scene.cancelled().text)
            if hour % 8 == 0 { frauds.append(try await scene.fraud().text) }
            for _ in 0..<12 { try await rig.webhookRound(after: .seconds(300)) }
        }
        #expect(website.arrived.isEmpty)
        #expect(try scene.left() == 24 + 2 * 3)
        #expect(try scene.left("dead_at IS NOT NULL") == 0)
        website.answer(.answered(status: 204))
        // The next to be tried finds it well, and then there is no waiting.
        var rounds = 0
        while try scene.left() > 0, rounds < 12 * 13 {
            try await rig.webhookRound(after: .seconds(300))
            rounds += 1
        }
        #expect(try scene.left() == 0)
        let decided = website.arrived.filter { $0.type == "login.decided" }
        #expect(decided.count == 27 && Set(decided.map(\.id.text)) == Set(ends + frauds))
        #expect(decided.allSatisfy { $0.id.text == $0.challenge })
        for challenge in frauds {
            let reported = website.arrived.filter { $0.challenge == challenge }.map(\.type)
            #expect(reported == ["login.decided", "user.frozen"])
        }
        // What was tried before was tried as the same, and said the same.
        #expect(Set(website.came.map(\.id)) == Set(website.arrived.map(\.id)))
        #expect(website.came.count > 2 * website.arrived.count)
        for webhook in website.arrived {
            #expect(website.came.filter { $0.id == webhook.id }.allSatisfy { $0.body == webhook.body })
        }
        #expect(scene.counted("dead") == 0)
        let lines = rig.sink.drain()
        #expect(lines.filter { $0.contains("event=webhook.recovered ") }.count == 1)
        #expect(!lines.contains { $0.contains("event=webhook.disabled") })
    }

    /// It takes one of them in the middle and is away again: that is no reason to give up what waits.
    @Test func briefRecoveryConsumesNoAttempts() async throws {
        let scene = try await WebhookFixture(.memory)
        let rig = scene.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 500))
        try await scene.cancelled()
        try rig.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts)
            SELECT randomblob(16), kind, 'user.locked', 1, user_id, website_id, created_at, expires_at, webhook_due_at, 0
            FROM outbox, n WHERE kind = 'webhook'
            """)
        for _ in 0..<(10 * 12) { try await rig.webhookRound(after: .seconds(300)) }
        // Each has two tries left, and the next of them is hours away.
        #expect(try scene.left("attempts = 6 AND dead_at IS NULL") == 50)
        // The relay may send by itself as soon as a login ends, but not before its answer is known.
        rig.relay.replace(nil)
        let stray = try await scene.cancelled().text
        rig.webhooks.answerOtherwise { .answered(status: $0.id.text == stray ? 200 : 500) }
        rig.relay.replace(rig.webhooks)
        let before = rig.webhooks.sent.count
        try await rig.webhookRound(after: .seconds(1))
        try await rig.webhookRound(after: .seconds(1))
        #expect(scene.counted("delivered") == 1)
        #expect(rig.webhooks.sent.count == before + 51)
        for _ in 0..<(13 * 12) { try await rig.webhookRound(after: .seconds(300)) }
        #expect(try scene.left("dead_at IS NULL") == 50)
        #expect(scene.counted("dead") == 0)
    }

    @Test(arguments: StoreKind.all) func endpointThatAnswers410StaysDisabledUntilEnabled(kind: StoreKind) async throws {
        let scene = try await WebhookFixture(kind)
        let rig = scene.rig
        let website = Receiver(rig.webhooks)
        for _ in 0..<6 { try await scene.cancelled() }
        website.answer(.answered(status: 410))
        try await rig.webhookRound(after: .zero)
        let tried = website.came.count
        #expect((1...4).contains(tried))
        #expect(scene.counted("unsubscribed") == Double(tried))
        website.answer(.answered(status: 200))
        for _ in 0..<24 { try await rig.webhookRound(after: .seconds(3600)) }
        #expect(website.came.count == tried)
        #expect(try scene.left("dead_at IS NULL") == 6)
        let lines = scene.lines(of: "webhook.disabled")
        #expect(lines.count == 1 && lines[0].contains("level=error") && lines[0].contains("website=shop"), "\(lines)")
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.disabled'") == 1)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_webhook_disabled_websites") == 1)
        #expect(try await scene.enable())
        try await rig.webhookRound(after: .seconds(1))
        #expect(try website.arrived.count == 6 && scene.left() == 0)
    }

    /// By two relays: one of them says so, once.
    @Test(arguments: [StoreKind.memory, .mariadb]) func endpointDownForThreeDaysIsDisabled(kind: StoreKind) async throws
    {
        let scene = try await WebhookFixture(kind)
        let rig = scene.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 500))
        let other = try rig.relay(over: rig.store)
        for _ in 0..<(4 * 24) {
            try await scene.cancelled()
            rig.time.advance(by: .seconds(3600))
            try await rig.on { relay in
                for relay in [relay, other] { await relay.runHeartbeat() }
                for relay in [relay, other] { await relay.deliverWebhooks() }
            }
            await rig.settled()
        }
        #expect(scene.lines(of: "webhook.disabled").count == 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.disabled'") == 1)
        #expect(try rig.text("SELECT disabled_by FROM webhook_endpoint") == "failures")
        let tried = website.came.count
        #expect(tried >= WebhookHealth.fewestTries)
        website.answer(.answered(status: 200))
        for _ in 0..<24 { try await rig.webhookRound(after: .seconds(3600)) }
        #expect(website.came.count == tried && website.arrived.isEmpty)
        // What is not dead by then waits for the operator.
        let waiting = try scene.left("dead_at IS NULL")
        #expect(try waiting > 0 && scene.left() == 4 * 24)
        #expect(try await scene.enable())
        try await rig.webhookRound(after: .seconds(1))
        #expect(website.arrived.count == Int(waiting))
    }

    @Test(arguments: StoreKind.all) func webhookIsDeadAfterEightAttempts(kind: StoreKind) async throws {
        let scene = try await WebhookFixture(kind)
        let rig = scene.rig
        let dead = try await scene.cancelled().text
        // Others arrive: it is this one that the website does not like.
        rig.webhooks.answerOtherwise { .answered(status: $0.id.text == dead ? 400 : 200) }
        for round in 0..<(48 * 6) {
            if round % 36 == 35 { try await scene.cancelled() }
            try await rig.webhookRound(after: .seconds(600))
        }
        // And one that does not count: the first of the others arrived while nothing else had, so all was due at once.
        #expect(rig.webhooks.sent.filter { $0.id.text == dead }.count == 8 + 1)
        #expect(scene.counted("delivered") == 8 && rig.webhooks.sent.count == 16 + 1)
        #expect(try scene.left("dead_at IS NOT NULL AND webhook_due_at IS NULL AND reason = 'answered 400'") == 1)
        #expect(scene.counted("dead") == 1 && scene.counted("failed") == 7 + 1)
        let lines = rig.sink.drain()
        #expect(lines.filter { $0.contains("level=error event=webhook.dead ") }.count == 1)
        #expect(lines.filter { $0.contains("level=warning event=webhook.failed ") }.count == 7 + 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.dead'") == 1)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_webhook_dead_letters") == 1)
    }

    /// Who asked for rest was the place that the website had.
    @Test(arguments: StoreKind.all) func newWebhookURLIsUsedAtOnce(kind: StoreKind) async throws {
        let scene = try await WebhookFixture(kind)
        let rig = scene.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 429, retryAfter: .seconds(3600)))
        try await scene.cancelled()
        try await rig.webhookRound(after: .zero)
        website.answer(.answered(status: 200))
        try await scene.cancelled()
        try await rig.webhookRound(after: .seconds(60))
        #expect(website.came.count == 1)
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example/new' WHERE id = x'\(scene.shop.id)'")
        try await rig.webhookRound(after: .seconds(1))
        #expect(website.arrived.map(\.url) == ["https://shop.example/new"])
        // The first waits as long as it was to; the operator's tool makes it due.
        #expect(try scene.left("attempts = 1") == 1)
    }

    @Test(arguments: StoreKind.all) func retryAfterIsRespected(kind: StoreKind) async throws {
        let scene = try await WebhookFixture(kind)
        let rig = scene.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 429, retryAfter: .seconds(600)))
        for _ in 0..<6 { try await scene.cancelled() }
        try await rig.webhookRound(after: .zero)
        let tried = website.came.count
        #expect((1...4).contains(tried))
        website.answer(.answered(status: 200))
        for _ in 0..<9 {
            try await scene.cancelled()
            try await rig.webhookRound(after: .seconds(60))
        }
        #expect(website.came.count == tried)
        // At the latest when each has waited a quarter longer than it was asked to.
        for _ in 0..<4 { try await rig.webhookRound(after: .seconds(60)) }
        #expect(try website.arrived.count == 15 && scene.left() == 0)
    }
}
