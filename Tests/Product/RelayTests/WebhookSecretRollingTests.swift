import Bytes
import Domain
import Storage
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay

/// Webhook secrets that the relays replace by themselves, every hour.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct WebhookSecretRollingTests {
    private static let hourly = RollingKeySettings(webhooks: .seconds(3600))

    /// The relays of a rig, and the website that gets webhooks.
    private struct Scene {
        let fixture: WebhookFixture
        let receiver: Receiver
        let relays: [Relay]
        var rig: RelayRig { fixture.rig }

        init(_ kind: StoreKind) async throws {
            let fixture = try await WebhookFixture(kind)
            self.fixture = fixture
            receiver = Receiver(fixture.rig.webhooks)
            relays = try (0..<2).map { _ in
                try fixture.rig.relay(over: fixture.rig.store, rolling: WebhookSecretRollingTests.hourly)
            }
        }

        func roll() async throws {
            let relays = relays
            try await withThrowingTaskGroup(of: Void.self) { group in
                for relay in relays {
                    group.addTask { try await rig.on { _ in await relay.rollWebhookSecrets() } }
                }
                try await group.waitForAll()
            }
        }

        func fetch() async throws -> FetchedWebhookSecrets {
            let (relay, shop) = (relays[1], fixture.shop)
            return try await rig.on { _ in try await relay.webhookSecrets(for: shop) }
        }

        /// Sends a webhook, and returns the number of its signatures.
        func signers() async throws -> Int {
            let challenge = try await fixture.cancelled()
            try await rig.webhookRound(after: .zero)
            let sent = try #require(receiver.came.last)
            #expect(sent.challenge == challenge.text)
            return try #require(sent.field("webhook-signature")).split(separator: " ").count
        }

        /// Whether these secrets verify the last webhook.
        func verifies(_ secrets: [Secret]) throws -> Bool {
            let sent = try #require(receiver.came.last)
            let keys = secrets.compactMap { WebhookSecret(String(decoding: $0.reveal(), as: UTF8.self)) }
            let check = WebhookCheck(secrets: keys)
            return (try? check.verify(sent.fields, body: sent.body, at: rig.time.now())) != nil
        }
    }

    private func text(_ secret: Secret) -> String { String(decoding: secret.reveal(), as: UTF8.self) }

    @Test(arguments: StoreKind.all) func onlyAWebsiteThatFetchesGetsANewSecret(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        scene.rig.time.advance(by: .seconds(7200))
        try await scene.roll()
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 0)
        let first = try await scene.fetch()
        #expect(first.former == nil && text(first.current) == text(RelayRig.webhookSecret.text))
        #expect(first.nextAt == first.madeAt + .seconds(3600))
        try await scene.roll()
        // Two relays at the same time make one secret.
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 1)
        #expect(try scene.rig.text("SELECT outcome FROM audit WHERE event = 'webhook.rotated'") == "relay")
        // Without a fetch no further one is made, however long it takes.
        scene.rig.time.advance(by: .seconds(365 * 86_400))
        try await scene.roll()
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 1)
    }

    @Test(arguments: StoreKind.all) func bothSecretsSignUntilAWeekAfterTheFetch(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        let first = try await scene.fetch()
        scene.rig.time.advance(by: .seconds(3600))
        try await scene.roll()
        scene.rig.time.advance(by: .seconds(30 * 86_400))
        #expect(try await scene.signers() == 2)
        let second = try await scene.fetch()
        let former = try #require(second.former)
        #expect(text(former.secret) == text(first.current) && text(second.current) != text(first.current))
        #expect(former.until == scene.rig.time.now() + .seconds(7 * 86_400))
        // A second fetch moves no end.
        scene.rig.time.advance(by: .seconds(7 * 86_400 - 1))
        #expect(try await scene.fetch().former?.until == former.until)
        #expect(try await scene.signers() == 2)
        // No third secret is made while two are valid.
        try await scene.roll()
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 1)
        scene.rig.time.advance(by: .seconds(1))
        #expect(try await scene.signers() == 1)
        #expect(try await scene.fetch().former == nil)
        try await scene.roll()
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 2)
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.fetched'") == 2)
    }

    /// Secrets that do not open are the oldest for ever. They are more than one reading returns.
    @Test(arguments: StoreKind.all) func secretsThatDoNotOpenStopNoOthers(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        _ = try await scene.fetch()
        for number in 0..<60 {
            _ = try await scene.rig.shop("shop\(number)", webhook: "https://shop\(number).example/hook")
        }
        let others = "website_id <> (SELECT id FROM website WHERE name = 'shop')"
        try scene.rig.execute(
            """
            UPDATE webhook_endpoint SET secrets = x'0001', made_at = '2020-01-01 00:00:00.000',
            fetched_at = '2020-01-01 00:00:00.000' WHERE \(others)
            """)
        scene.rig.time.advance(by: .seconds(3600))
        try await scene.roll()
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 1)
        #expect(try scene.rig.count("SELECT count(*) FROM webhook_endpoint WHERE secrets = x'0001'") == 60)
    }

    @Test(arguments: StoreKind.all) func websiteWithoutWebhooksHasNoSecrets(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop()
        #expect(await refusal { try await rig.on { try await $0.webhookSecrets(for: shop) } } == .notFound)
    }

    /// The website fetches daily, and its answers of five days are lost.
    @Test(arguments: StoreKind.all) func lostAnswersBreakNothing(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        var known = [try await scene.fetch().current]
        scene.rig.time.advance(by: .seconds(3600))
        try await scene.roll()
        for _ in 0..<5 {
            _ = try await scene.fetch()
            scene.rig.time.advance(by: .seconds(86_400))
            _ = try await scene.signers()
            #expect(try scene.verifies(known))
        }
        known = [try await scene.fetch().current]
        scene.rig.time.advance(by: .seconds(7 * 86_400))
        _ = try await scene.signers()
        #expect(try scene.verifies(known))
    }

    /// The drill: webhooks go on while secrets roll, and the website fetches at odd times. It verifies
    /// each webhook with what it has.
    @Test(arguments: StoreKind.all) func noWebhookIsRefusedWhileSecretsRoll(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        var known = [RelayRig.webhookSecret.text]
        for round in 0..<40 {
            scene.rig.time.advance(by: .seconds(3600 * 43))
            try await scene.roll()
            _ = try await scene.signers()
            #expect(try scene.verifies(known), "in round \(round)")
            if round % 3 == 0 {
                let fetched = try await scene.fetch()
                known = [fetched.current]
                #expect(try scene.verifies(known + (fetched.former.map { [$0.secret] } ?? [])), "in round \(round)")
            }
        }
        #expect(try scene.rig.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") > 4)
    }
}
