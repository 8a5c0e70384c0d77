import Domain
import Storage
import Synchronization
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay

/// The store fails, or a relay dies, between an attempt and the record of its outcome.
@Suite(.mayBlock) struct WebhookStoreOutageTests {
    /// A connection to the store that can be cut.
    private final class StoreConnection: Sendable {
        private let isCut = Mutex(false)

        func cut(_ cut: Bool) { isCut.withLock { $0 = cut } }

        func store(at url: StorageURL) throws -> Store {
            try Store.watched(at: url) { [self] (steps, session) throws(SessionFailure) in
                if isCut.withLock({ $0 }) { throw .refused("cut") }
                return try session.run(steps)
            }
        }

        /// Returns a courier that cuts the connection as soon as it has sent something.
        func courier(before other: RecordedWebhooks) -> any WebhookCourier { Courier(connection: self, other: other) }

        private struct Courier: WebhookCourier {
            let connection: StoreConnection
            let other: RecordedWebhooks

            func send(_ webhook: WebhookRequest) async -> WebhookOutcome {
                let outcome = await other.send(webhook)
                connection.cut(true)
                return outcome
            }
        }
    }

    /// Several deliveries are recorded together.
    @Test(arguments: [StoreKind.file, .mariadb], [1, 4]) func deliveredWebhookIsNotResentAfterAStoreOutage(
        kind: StoreKind, count: Int
    ) async throws {
        let place = try await kind.fresh()
        let fixture = try await WebhookFixture(try await RelayRig(over: place, time: TestTime()))
        let rig = fixture.rig
        let connection = StoreConnection()
        let store = try await blocking { try connection.store(at: place.url) }
        let relay = try rig.relay(over: store, webhooks: connection.courier(before: rig.webhooks))
        for _ in 0..<count { try await fixture.cancelled() }
        try await rig.on { _ in await relay.deliverWebhooks() }
        await rig.settled()
        #expect(rig.webhooks.sent.count == count)
        #expect(fixture.lines(of: "webhook.delivered").isEmpty)
        connection.cut(false)
        // The lease must end before the relay processes the webhook again.
        for _ in 0..<4 {
            #expect(try fixture.left() == count)
            rig.time.advance(by: .seconds(7))
            try await rig.on { _ in await relay.deliverWebhooks() }
            await rig.settled()
        }
        rig.time.advance(by: .seconds(7))
        try await rig.on { _ in await relay.deliverWebhooks() }
        await rig.settled()
        #expect(try fixture.left() == 0)
        #expect(rig.webhooks.sent.count == count)
        #expect(fixture.lines(of: "webhook.delivered").count == count)
        store.close()
    }

    /// The events after a failure that could not be written.
    enum Meanwhile: CaseIterable {
        case nothing, triedByOthers, replayed, anHour

        /// The number of failures in the store before the next attempt.
        var failures: Int {
            switch self {
            case .nothing: 1
            case .triedByOthers: 3
            case .replayed, .anHour: 0
            }
        }
    }

    /// The failure is written when the entry is processed again, unless another attempt was made meanwhile or it is
    /// too old.
    @Test(arguments: Meanwhile.allCases) func failureDuringAStoreOutageIsRecordedForItsAttempt(meanwhile: Meanwhile)
        async throws
    {
        let place = try await StoreKind.file.fresh()
        let fixture = try await WebhookFixture(try await RelayRig(over: place, time: TestTime()))
        let rig = fixture.rig
        let website = Receiver(rig.webhooks)
        website.answer(.answered(status: 500))
        let connection = StoreConnection()
        let store = try await blocking { try connection.store(at: place.url) }
        let relay = try rig.relay(over: store, webhooks: connection.courier(before: rig.webhooks))
        try await fixture.cancelled()
        try await rig.on { _ in await relay.deliverWebhooks() }
        await rig.settled()
        #expect(website.came.count == 1)
        #expect(try fixture.left("attempts = 0 AND holder IS NOT NULL") == 1)
        connection.cut(false)
        switch meanwhile {
        case .nothing: break
        case .triedByOthers: try rig.execute("UPDATE outbox SET attempts = 3 WHERE kind = 'webhook'")
        case .replayed:
            try rig.execute("UPDATE outbox SET expires_at = '2100-01-01 00:00:00.000' WHERE kind = 'webhook'")
        case .anHour: rig.time.advance(by: CompletedAttempt.life)
        }
        rig.time.advance(by: Relay.webhookLease + .seconds(1))
        try await rig.on { _ in await relay.deliverWebhooks() }
        await rig.settled()
        // The pause is over in any case. The outcome of this attempt cannot be written either.
        #expect(website.came.count == 2)
        #expect(try fixture.left("attempts = \(meanwhile.failures) AND holder IS NOT NULL") == 1)
        #expect(fixture.lines(of: "webhook.failed").count == (meanwhile == .nothing ? 1 : 0))
        store.close()
    }

    /// The webhook may have arrived, so it is sent again under the same id.
    @Test(arguments: [StoreKind.file, .mariadb]) func webhookOfADeadRelayIsResent(kind: StoreKind) async throws {
        let place = try await kind.fresh()
        let fixture = try await WebhookFixture(try await RelayRig(over: place, time: TestTime()))
        let rig = fixture.rig
        let connection = StoreConnection()
        let store = try await blocking { try connection.store(at: place.url) }
        let relay = try rig.relay(over: store, webhooks: connection.courier(before: rig.webhooks))
        try await rig.on { _ in await relay.runHeartbeat() }
        let challenge = try await fixture.fraud()
        try await rig.on { _ in await relay.deliverWebhooks() }
        await rig.settled()
        #expect(rig.webhooks.sent.map(\.id.text) == [challenge.text])
        // While the relay may be alive, no other relay processes its entry.
        try await rig.webhookRound(after: .seconds(1))
        #expect(rig.webhooks.sent.count == 1)
        // The relay polls every second, because a jump of the clock does not count as silence of the other relay.
        for _ in 0..<10 {
            rig.time.advance(by: .seconds(1))
            try await rig.on { relay in await relay.runHeartbeat() }
        }
        try await rig.webhookRound(after: .seconds(1))
        let sent = rig.webhooks.sent
        try #require(sent.map(\.type) == ["login.decided", "login.decided", "user.frozen"])
        #expect(sent[0].id == sent[1].id && sent[0].body == sent[1].body)
        #expect(sent[0].field("webhook-id") == sent[1].field("webhook-id"))
        #expect(try fixture.left() == 0)
        // The death of a relay is no failure of the website.
        #expect(fixture.counted("failed") == 0)
        store.close()
    }
}
