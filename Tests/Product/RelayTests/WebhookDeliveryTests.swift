import Domain
import Storage
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay

/// The delivery of webhooks: every webhook arrives, whatever its website does, and no other website waits for it.
@Suite(.mayBlock) struct WebhookDeliveryTests {
    @Test(arguments: StoreKind.all) func loginDecidedIsSentAtOnce(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        // Until the relay knows of an endpoint, a change starts no round.
        try await fixture.cancelled()
        await rig.settled()
        #expect(rig.webhooks.sent.isEmpty)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_webhook_oldest_overdue_seconds") == 0)
        let second = try await fixture.cancelled()
        await rig.settled()
        #expect(rig.webhooks.sent.count == 2)
        #expect(rig.webhooks.sent.contains { $0.id.text == second.text })
        #expect(try fixture.left() == 0)
        #expect(fixture.counted("delivered") == 2)
        #expect(rig.registry.number("twoefay_webhook_delivery_seconds_count") == 2)
        let lines = fixture.lines(of: "webhook.delivered")
        #expect(lines.count == 2)
        for word in [
            "level=info", "website=shop", "challenge=\(second)", "message=\(second)", "kind=login.decided",
            "status=200", "attempt=1",
        ] {
            #expect(lines.contains { $0.contains(word) }, "\(word): \(lines)")
        }
    }

    @Test(arguments: StoreKind.all) func hangingEndpointHasFewWebhooksInFlight(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        rig.webhooks.hold()
        for _ in 0..<6 { try await fixture.cancelled() }
        try await rig.on { relay in await relay.deliverWebhooks() }
        for _ in 0..<4 { _ = await rig.webhooks.next() }
        try await rig.on { relay in await relay.deliverWebhooks() }
        #expect(rig.webhooks.sent.count == 4)
        website.answer(.unanswered(.timeout))
        rig.webhooks.release()
        await rig.settled()
        // None of them is sent again at once.
        #expect(Set(rig.webhooks.sent.map(\.id)).count == rig.webhooks.sent.count)
        website.answer(.answered(status: 200))
        for _ in 0..<8 { try await rig.webhookRound(after: .seconds(60)) }
        #expect(try website.arrived.count == 6 && fixture.left() == 0)
    }

    /// One website hangs, and many webhooks wait for it.
    @Test func hangingEndpointDelaysNoOther() async throws {
        let slow = try await WebhookFixture(.memory)
        let rig = slow.rig
        let quick = try await WebhookFixture(rig, "bank", url: "https://bank.example/hook")
        let bank = RecordedWebhooks()
        rig.relay.replace(Switchboard(all: ["https://shop": rig.webhooks, "https://bank": bank]))
        rig.webhooks.hold()
        try await slow.cancelled()
        try rig.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts)
            SELECT randomblob(16), kind, 'user.locked', 1, user_id, website_id, created_at, expires_at, webhook_due_at, 0
            FROM outbox, n WHERE kind = 'webhook'
            """)
        try await rig.on { relay in await relay.deliverWebhooks() }
        for _ in 0..<4 { _ = await rig.webhooks.next() }
        for _ in 1...20 {
            let reported = try await quick.cancelled()
            rig.time.advance(by: .seconds(1))
            try await rig.on { relay in await relay.deliverWebhooks() }
            // Not `settled`, because the other website still has four in flight.
            #expect(await bank.next().id.text == reported.text)
        }
        #expect(rig.webhooks.sent.count == 4)
        #expect(try slow.left() == 10_000)
        try await rig.on { relay in await relay.stopDeliveries() }
        rig.webhooks.release()
        await rig.settled()
        // The relay ends: the webhooks in flight get their outcomes, and no other is sent.
        #expect(try rig.webhooks.sent.count == 4 && slow.left() == 9_996)
    }

    @Test(arguments: StoreKind.all) func twoRelaysDeliverEachWebhookOnce(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        let other = try rig.relay(over: rig.store)
        var ends: Set<String> = []
        for number in 0..<40 { ends.insert(try await fixture.cancelled(by: number % 2 == 0 ? other : nil).text) }
        try await rig.on { relay in
            for relay in [relay, other] { await relay.runHeartbeat() }
            for relay in [other, relay] { await relay.deliverWebhooks() }
        }
        await rig.settled()
        #expect(website.came.count == 40 && Set(website.arrived.map(\.id.text)) == ends)
        #expect(try fixture.left() == 0)
    }

    /// Both secrets are used while the website changes its secret.
    @Test(arguments: StoreKind.all) func eachAttemptIsSignedWithTheValidSecrets(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        let new = WebhookSecret.make(SystemRandomness())
        let now = rig.time.now()
        let both = WebhookSecrets(current: RelayRig.webhookSecret).rotated(to: new, at: now)
        try await fixture.signed(with: both)
        try await fixture.cancelled()
        website.answer(.answered(status: 500))
        try await rig.webhookRound(after: .seconds(1))
        let first = try #require(website.came.last)
        for secret in [new, RelayRig.webhookSecret] {
            try WebhookCheck(secrets: [secret]).verify(first.fields, body: first.body, at: rig.time.now())
        }
        website.answer(.answered(status: 200))
        try await rig.webhookRound(after: WebhookSecrets.overlap)
        let second = try #require(website.came.last)
        #expect(second.id == first.id && second.field("webhook-id") == first.field("webhook-id"))
        try WebhookCheck(secrets: [new]).verify(second.fields, body: second.body, at: rig.time.now())
        #expect(throws: WebhookFault.signature) {
            try WebhookCheck(secrets: [RelayRig.webhookSecret]).verify(
                second.fields, body: second.body, at: rig.time.now())
        }
    }

    /// This relay lacks the key. That is no fault of the website, and counts no attempt.
    @Test(arguments: StoreKind.all) func webhookWithoutReadableSecretIsNotSent(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        let sealed = try rig.text("SELECT hex(secrets) FROM webhook_endpoint")
        try rig.execute("UPDATE webhook_endpoint SET secrets = x'00'")
        for _ in 0..<3 { try await fixture.cancelled() }
        for _ in 0..<30 { try await rig.webhookRound(after: .seconds(1)) }
        #expect(website.came.isEmpty)
        #expect(try fixture.left("attempts = 0") == 3)
        // The log shows it, with few lines.
        #expect((1...4).contains(fixture.lines(of: "webhook.sealed").count))
        try rig.execute("UPDATE webhook_endpoint SET secrets = x'\(sealed)'")
        for _ in 0..<2 { try await rig.webhookRound(after: WebhookQueues.pause) }
        #expect(try website.arrived.count == 3 && fixture.left() == 0)
    }

    @Test(arguments: StoreKind.all) func expiredWebhookIsDeadUnsent(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        try await fixture.cancelled()
        try await fixture.rig.webhookRound(after: .seconds(31 * 86_400))
        #expect(fixture.rig.webhooks.sent.isEmpty)
        #expect(try fixture.left("dead_at IS NOT NULL AND reason = 'expired unsent'") == 1)
        #expect(fixture.lines(of: "webhook.dead").count == 1 && fixture.counted("dead") == 1)
    }

    @Test(arguments: StoreKind.all) func deletedUserCancelsPendingWebhooks(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        try await fixture.cancelled()
        try await fixture.rig.on { [shop = fixture.shop] relay in try await relay.forget(username: "ada", by: shop) }
        try await fixture.rig.webhookRound(after: .seconds(1))
        #expect(try fixture.rig.webhooks.sent.isEmpty && fixture.left() == 0)
    }

    /// Without a courier, webhooks wait for one.
    @Test func webhookWaitsWithoutACourier() async throws {
        let fixture = try await WebhookFixture(.memory)
        fixture.rig.relay.replace(nil)
        try await fixture.cancelled()
        try await fixture.rig.webhookRound(after: .seconds(1))
        #expect(try fixture.left("holder IS NULL") == 1)
        fixture.rig.relay.replace(fixture.rig.webhooks)
        try await fixture.rig.webhookRound(after: .seconds(1))
        #expect(try fixture.rig.webhooks.sent.count == 1 && fixture.left() == 0)
    }
}
