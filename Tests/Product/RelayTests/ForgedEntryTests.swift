import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Outbox entries that an attacker changes or plants, or that rely on such rows. Each of them stops only itself.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ForgedEntryTests {
    private static let zeros = String(repeating: "00", count: 16)

    // MARK: Rows of the outbox

    @Test(arguments: StoreKind.all, OutboxEntryFixture.Kind.allCases)
    func aForgedRowBetweenGenuineOnesIsDead(kind: StoreKind, what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(kind, what)
        let rig = fixture.rig
        try rig.forge("UPDATE outbox SET counter = 99 WHERE \(fixture.isSecond)")
        for _ in 0..<3 { try await fixture.round() }
        #expect(try fixture.done() == [true, false, true])
        #expect(try fixture.second("dead_at IS NOT NULL AND reason = 'forged'"))
        #expect(try fixture.second("due_at IS NULL AND webhook_due_at IS NULL AND holder IS NULL AND lease IS NULL"))
        // Neither the end of its lease nor a dead relay brings it back.
        try await rig.on { relay in try await rig.store.removeDeadRelay(relay.id, at: nil, now: rig.time.now()) }
        try await fixture.round()
        #expect(rig.forgeries == ["outbox \(try fixture.ids()[1])"])
    }

    @Test(arguments: StoreKind.all, OutboxEntryFixture.Kind.allCases)
    func aForgedRowIsListedCountedAndDropped(kind: StoreKind, what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(kind, what)
        let rig = fixture.rig
        try rig.forge("UPDATE outbox SET counter = 99 WHERE \(fixture.isSecond)")
        try await fixture.round()
        let id = try #require(OutboxEntryID(try fixture.ids()[1]))
        let dead = try await fixture.dead()
        #expect(dead.map(\.id) == [id] && dead.first?.reason == "forged" && dead.first?.goesWithLogin == false)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_outbox_dead_letters") == 1)
        #expect(rig.registry.number("twoefay_webhook_dead_letters") == (what == .webhook ? 1 : 0))
        let store = rig.store
        let dropped = try await rig.on { relay in
            try await store.run(OutboxAdmin.drop(id, at: rig.time.now(), as: relay.operations.new()))
        }
        #expect(dropped)
        #expect(try await fixture.dead().isEmpty)
    }

    /// An operator can adopt the entry and replay it.
    @Test(arguments: StoreKind.all, OutboxEntryFixture.Kind.allCases)
    func aForgedRowIsReplayedOnceItIsAdopted(kind: StoreKind, what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(kind, what)
        let rig = fixture.rig
        try rig.forge("UPDATE outbox SET counter = 99 WHERE \(fixture.isSecond)")
        try await fixture.round()
        let id = try #require(OutboxEntryID(try fixture.ids()[1]))
        let store = rig.store
        let replay: @Sendable (Relay) async throws -> Bool = { relay in
            try await store.run(OutboxAdmin.replay(id, at: rig.time.now(), as: relay.operations.new()))
        }
        await #expect(throws: StoreFailure.forged("outbox \(id)")) { try await rig.on(replay) }
        // Only the counter of a code is 0; other entries have none.
        try rig.execute("UPDATE outbox SET counter = \(what == .sms ? "0" : "NULL") WHERE \(fixture.isSecond)")
        #expect(try await rig.on(replay))
        try await fixture.round()
        #expect(try fixture.done() == [true, true, true])
    }

    /// A row that no relay wrote, with the ids of a genuine row.
    @Test(arguments: StoreKind.all, OutboxEntryFixture.Kind.allCases)
    func aPlantedRowIsDead(kind: StoreKind, what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(kind, what)
        try fixture.rig.forge(
            """
            INSERT INTO outbox (id, kind, event, user_id, website_id, ordinal, webhook_due_at, challenge_id, device_id, factor_id,
            counter, address, created_at, expires_at, due_at, attempts, mac)
            SELECT x'\(Self.zeros)', kind, event, user_id, website_id, ordinal, webhook_due_at, challenge_id, device_id, factor_id,
            counter, address, created_at, expires_at, due_at, attempts, mac FROM outbox WHERE \(fixture.isSecond)
            """)
        for _ in 0..<2 { try await fixture.round() }
        #expect(try fixture.done() == [true, true, true])
        #expect(fixture.rig.forgeries == ["outbox \(Self.zeros)"])
    }

    /// Another relay may know the key, so only a row that no key has signed becomes dead.
    @Test(arguments: StoreKind.all, OutboxEntryFixture.Kind.allCases)
    func aRowUnderAnUnknownKeyIsKept(kind: StoreKind, what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(kind, what)
        let mac = try fixture.rig.text("SELECT hex(mac) FROM outbox WHERE \(fixture.isSecond)")
        try fixture.rig.forge("UPDATE outbox SET mac = x'ffffffff\(mac.dropFirst(8))' WHERE \(fixture.isSecond)")
        for _ in 0..<2 { try await fixture.round() }
        #expect(try fixture.done() == [true, false, true])
        #expect(
            try fixture.second("dead_at IS NULL AND holder IS NULL AND coalesce(due_at, webhook_due_at) IS NOT NULL"))
        try fixture.rig.forge("UPDATE outbox SET mac = x'\(mac)' WHERE \(fixture.isSecond)")
        try await fixture.round(after: .seconds(60))
        #expect(try fixture.done() == [true, true, true])
    }

    // MARK: Rows that these rely on

    /// The entry is kept until the other row is repaired, with growing pauses, and uses up no attempts.
    @Test(arguments: StoreKind.all, OutboxEntryFixture.Kind.allCases.filter { $0 != .expiry })
    func aRowThatReliesOnAForgedOneWaits(kind: StoreKind, what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(kind, what)
        let rig = fixture.rig
        let relied = try fixture.relied()
        let kept = try rig.text("SELECT \(relied.column) FROM \(relied.table) WHERE \(relied.condition)")
        try rig.forge("UPDATE \(relied.table) SET \(relied.column) = '\(relied.forged)' WHERE \(relied.condition)")
        var failures: [Int] = []
        for _ in 0..<10 {
            try await fixture.round()
            failures.append(rig.forgeries.count)
        }
        #expect(try fixture.done() == [true, false, true])
        #expect(try fixture.second("dead_at IS NULL AND holder IS NULL"))
        if what == .webhook { #expect(try fixture.second("attempts = 0")) }
        // At first in each round, then less and less often.
        #expect((failures.last ?? 0) > 1 && (failures.last ?? 0) < 8, "\(failures)")
        try rig.forge("UPDATE \(relied.table) SET \(relied.column) = '\(kept)' WHERE \(relied.condition)")
        try await fixture.round(after: .seconds(3600))
        #expect(try fixture.isSettled())
        #expect(rig.forgeries.count == failures.last)
    }

    /// Webhooks to a website whose row is not genuine wait; other websites get theirs.
    @Test(arguments: StoreKind.all) func aForgedWebsiteStopsOnlyItself(kind: StoreKind) async throws {
        let shop = try await WebhookFixture(kind)
        let bank = try await WebhookFixture(shop.rig, "bank", url: "https://bank.example/hook")
        for fixture in [shop, bank] { for _ in 0..<2 { try await fixture.cancelled() } }
        try shop.rig.forge("UPDATE website SET webhook_url = 'https://stranger.example/' WHERE name = 'shop'")
        for _ in 0..<3 { try await shop.rig.webhookRound(after: .seconds(31)) }
        #expect(shop.rig.webhooks.sent.map(\.url) == [String](repeating: "https://bank.example/hook", count: 2))
        #expect(try shop.left("dead_at IS NULL AND holder IS NULL AND attempts = 0") == 2 && bank.left() == 0)
        try shop.rig.forge("UPDATE website SET webhook_url = '\(WebhookFixture.url)' WHERE name = 'shop'")
        try await shop.rig.webhookRound(after: .seconds(600))
        #expect(shop.rig.webhooks.sent.count == 4)
    }

    /// SQLite stores values of any type.
    @Test func aWebsiteThatCannotBeReadStopsOnlyItself() async throws {
        let shop = try await WebhookFixture(.file)
        let bank = try await WebhookFixture(shop.rig, "bank", url: "https://bank.example/hook")
        for fixture in [shop, bank] { try await fixture.cancelled() }
        try shop.rig.forge("UPDATE webhook_endpoint SET failed_attempts = 'some' WHERE website_id = x'\(shop.shop.id)'")
        try await shop.rig.webhookRound(after: .seconds(1))
        #expect(shop.rig.webhooks.sent.map(\.url) == ["https://bank.example/hook"])
    }

    /// The same for the key of a row: the entry is never processed, and the other entries are.
    @Test(arguments: OutboxEntryFixture.Kind.allCases)
    func aRowWithoutAnIDStopsOnlyItself(what: OutboxEntryFixture.Kind) async throws {
        let fixture = try await OutboxEntryFixture(.file, what)
        try fixture.rig.forge("UPDATE outbox SET id = 'no id' WHERE \(fixture.isSecond)")
        for _ in 0..<3 { try await fixture.round() }
        #expect(try fixture.done() == [true, false, true])
    }

    /// An expiry only takes rights away, so a login that is not genuine expires like any other.
    @Test(arguments: StoreKind.all) func aForgedLoginExpires(kind: StoreKind) async throws {
        let fixture = try await OutboxEntryFixture(kind, .expiry)
        let relied = try fixture.relied()
        try fixture.rig.forge("UPDATE challenge SET \(relied.column) = '\(relied.forged)' WHERE \(relied.condition)")
        try await fixture.round()
        #expect(try fixture.done() == [true, true, true])
        #expect(fixture.rig.forgeries.isEmpty)
        #expect(try await fixture.rig.notGenuine().contains { $0.hasPrefix("challenge ") })
    }

    /// Unknown values in columns that no MAC covers.
    @Test(arguments: StoreKind.all, OutboxEntryFixture.Unreadable.allCases)
    func aRowThatCannotBeReadStopsOnlyItself(kind: StoreKind, what: OutboxEntryFixture.Unreadable) async throws {
        let fixture = try await OutboxEntryFixture(kind, what.kind)
        let (change, back) = try fixture.unreadable(what)
        try fixture.rig.forge(change)
        for _ in 0..<2 { try await fixture.round() }
        #expect(try fixture.done() == [true, false, true])
        #expect(try fixture.second("dead_at IS NULL AND holder IS NULL"))
        #expect(fixture.rig.forgeries.isEmpty)
        try fixture.rig.forge(back)
        try await fixture.round(after: .seconds(600))
        #expect(try fixture.isSettled())
    }
}
