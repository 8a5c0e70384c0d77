import Bytes
import Directory
import Domain
import Glibc
import Log
import Metrics
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Daemon

/// Syncs that must change nothing, and the order of syncs by several processes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DirectoryRefusalTests {
    private func users(_ shop: SyncedShop) throws -> Int64 {
        try shop.rig.count("SELECT count(*) FROM user WHERE state = 'active'")
    }

    private func message(_ work: () throws -> Void) -> String? {
        do {
            try work()
            return nil
        } catch {
            return (error as? Failure)?.message
        }
    }

    @Test(arguments: StoreKind.all) func sourceThatFailsChangesNothing(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        #expect(message { try shop.sync(allowsMany: true) } == "the source has no entries")
        #expect(message { try shop.sync("1,ada,,,,,", "2,bo", allowsMany: true) }?.contains("line 3") == true)
        #expect(
            message { try shop.sync("1,,,,,,", "2,,,,,,", allowsMany: true) } == "none of the 2 entries can be used")
        #expect(try users(shop) == 2)
        let last = try #require(try shop.rig.store.runBlocking(DirectoryRuns.all)["staff"])
        #expect(last.error != nil && last.succeededAt != nil && last.counts.users == 2)
    }

    @Test(arguments: StoreKind.all) func tooManyLeaversAreRefused(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, "disable_limit: 50")
        try shop.sync("1,a,,,,,", "2,b,,,,,", "3,c,,,,,", "4,d,,,,,")
        #expect(
            message { try shop.sync("1,a,,,,,", "9,new,,,,,") }?.hasPrefix("3 of 4 users would be disabled") == true)
        // Not even the additions are made.
        #expect(try users(shop) == 4 && shop.user("new") == nil)
        #expect(try shop.sync("1,a,,,,,", "2,b,,,,,").counts.disabled == 2)
        #expect(try shop.sync("9,new,,,,,", allowsMany: true).counts.disabled == 2)
    }

    /// Users without the policy of their group get that of the website, which may be weaker.
    @Test(arguments: StoreKind.all) func tooManyLostPoliciesAreRefused(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, "groups: [{group: admins, policy: {number: 6}}]")
        try shop.sync("1,a,,,,,admins", "2,b,,,,,admins", "3,c,,,,,admins")
        #expect(
            message { try shop.sync("1,a,,,,,admin", "2,b,,,,,admin", "3,c,,,,,admin") }?.hasPrefix(
                "3 of 3 users would be disabled, or lose an address or the policy of a group") == true)
        #expect(try shop.rig.count("SELECT count(*) FROM user WHERE policy IS NOT NULL") == 3)
        // A few members may always leave their group.
        #expect(try shop.sync("1,a,,,,,", "2,b,,,,,admins", "3,c,,,,,admins").counts.changed == 1)
    }

    @Test(arguments: StoreKind.all) func dryRunChangesNothing(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,")
        try shop.write("2,bob,,,,,")
        let before = try shop.rig.count("SELECT count(*) FROM audit")
        let outcome = try shop.sync.dryRun()
        #expect(outcome.plan.actions.count == 2)
        #expect(try shop.rig.count("SELECT count(*) FROM audit") == before)
        #expect(try shop.user("ada")?.state == .active && shop.user("bob") == nil)
    }

    @Test func websiteMustExistAndBeEnabled() async throws {
        let shop = try await SyncedShop(.memory)
        try shop.rig.execute("UPDATE website SET state = 'disabled'")
        #expect(message { try shop.sync("1,ada,,,,,") } == "the website shop is disabled")
        try shop.rig.execute("UPDATE website SET name = 'bank'")
        #expect(message { try shop.sync("1,ada,,,,,") } == "there is no website shop")
    }

    // MARK: Several processes

    @Test(arguments: StoreKind.all) func syncThatWasOvertakenWritesNothing(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        let store = shop.rig.store
        let old: OperationID = shop.keys.operations.draw()
        try store.runBlocking(DirectoryRuns.begin("staff", old, at: shop.rig.time.now()))
        try store.runBlocking(DirectoryRuns.begin("staff", shop.keys.operations.draw(), at: shop.rig.time.now()))
        try shop.write("1,ada,late@example.org,,,,", "3,carl,,,,,")
        #expect(throws: shop.sync.overtaken) {
            try shop.sync.carryOut(old, shop.keys, allowsMany: true, isStopped: { false })
        }
        #expect(try shop.user("ada")?.email == nil && shop.user("bob")?.state == .active && shop.user("carl") == nil)
        #expect(shop.sync.overtaken.code == .conflict)
    }

    /// Its counts would say that the newer sync has ended.
    @Test(arguments: StoreKind.all) func syncThatWasOvertakenIsNoSuccessEvenWithoutChanges(
        kind: StoreKind
    ) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,")
        let (store, old): (Store, OperationID) = (shop.rig.store, shop.keys.operations.draw())
        try store.runBlocking(DirectoryRuns.begin("staff", old, at: shop.rig.time.now()))
        try store.runBlocking(DirectoryRuns.begin("staff", shop.keys.operations.draw(), at: shop.rig.time.now()))
        #expect(throws: shop.sync.overtaken) {
            try shop.sync.carryOut(old, shop.keys, allowsMany: false, isStopped: { false })
        }
        let last = try #require(try store.runBlocking(DirectoryRuns.all)["staff"])
        #expect(last.endedAt == nil && last.error == nil)
    }

    /// The file is a FIFO, so that the relay's sync waits for the test after it has begun.
    @Test func syncOfTheRelayThatWasOvertakenIsReported() async throws {
        let shop = try await SyncedShop(.memory)
        let path = shop.settings.path(of: FileName("users.csv"))
        try #require(mkfifo(path, 0o600) == 0)
        let (sink, registry) = (ObservedSink(), Registry())
        let work = try DirectoryWork(
            shop.settings, store: shop.rig.store, relay: shop.keys.operations.draw(),
            operationsKey: Secret(Array(repeating: 7, count: 32)), sealer: try RelayRig.sealer(),
            randomness: SystemRandomness(), time: shop.rig.time,
            log: Log(minimum: .debug, time: shop.rig.time, sink: sink), registry)
        defer { work.close() }
        async let synced: Void = work.syncDue()
        let file = open(path, O_WRONLY)
        try #require(file >= 0)
        try shop.rig.store.runBlocking(
            DirectoryRuns.begin("staff", shop.keys.operations.draw(), at: shop.rig.time.now()))
        let rows = Array("\(SyncedShop.header)\n1,ada,,,,,\n".utf8)
        #expect(write(file, rows, rows.count) == rows.count)
        close(file)
        await synced
        #expect(sink.lines.count == 1 && sink.lines.allSatisfy { ObservedSink.isOf("directory.overtaken", $0) })
        #expect(registry.number(#"twoefay_directory_syncs_total{directory="staff",outcome="overtaken"}"#) == 1)
        #expect(registry.number(#"twoefay_directory_syncs_total{directory="staff",outcome="ok"}"#) == 0)
        #expect(try shop.user("ada") == nil)
    }

    @Test func syncThatStopsInTheMiddleIsFinishedByTheNext() async throws {
        let shop = try await SyncedShop(.file)
        let rows = (1...450).map { "\($0),user\($0),\($0)@example.org,,,," }
        try TextFile.write(
            ([SyncedShop.header] + rows).map { "\($0)\n" }.joined(), to: shop.settings.path(of: FileName("users.csv")))
        let run: OperationID = shop.keys.operations.draw()
        try shop.rig.store.runBlocking(DirectoryRuns.begin("staff", run, at: shop.rig.time.now()))
        var asked = 0
        #expect(throws: Failure.self) {
            _ = try shop.sync.carryOut(
                run, shop.keys, allowsMany: false,
                isStopped: {
                    asked += 1
                    return asked == 5
                })
        }
        #expect(try users(shop) == 200)
        let outcome = try shop.sync.run(shop.keys, allowsMany: false)
        #expect(outcome.counts.added == 250 && outcome.plan.unchanged == 200)
        #expect(try users(shop) == 450)
        // Every user has its factor, so none was half written.
        #expect(try shop.rig.count("SELECT count(*) FROM factor") == 450)
    }

    /// Returns whether the relay may sync now, by an interval of a minute.
    private func turn(_ relay: RelayID, _ shop: SyncedShop) throws -> Bool {
        let now = shop.rig.time.now()
        return try shop.rig.store.runBlocking(
            DirectoryRuns.beginIfDue(
                "staff", shop.keys.operations.draw(), by: relay, before: now - .seconds(60), at: now)
        ).isOurs
    }

    /// A relay that asks too early may never ask again, because its settings have no source any
    /// more.
    @Test(arguments: StoreKind.all) func relayThatIsNotDueKeepsNoLease(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        let store = shop.rig.store
        let (first, second): (RelayID, RelayID) = (shop.keys.operations.draw(), shop.keys.operations.draw())
        for relay in [first, second] { _ = try await store.sendHeartbeat(relay, at: shop.rig.time.now()) }
        #expect(try turn(first, shop))
        try store.runBlocking(DirectoryRuns.release("staff", by: first))
        #expect(try turn(second, shop) == false)
        shop.rig.time.advance(by: .seconds(61))
        #expect(try turn(first, shop))
        // The store could not be reached when the sync had ended.
        #expect(try turn(first, shop) == false)
        shop.rig.time.advance(by: .seconds(61))
        #expect(try turn(second, shop))
        // It does not release the lease of another relay.
        #expect(try turn(first, shop) == false)
        shop.rig.time.advance(by: .seconds(61))
        #expect(try turn(first, shop) == false)
    }

    @Test(arguments: StoreKind.all) func oneRelayAtATimeHasTheTurn(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        let store = shop.rig.store
        let (first, second): (RelayID, RelayID) = (shop.keys.operations.draw(), shop.keys.operations.draw())
        for relay in [first, second] { _ = try await store.sendHeartbeat(relay, at: shop.rig.time.now()) }
        func turn(_ relay: RelayID) throws -> Bool { try self.turn(relay, shop) }
        #expect(try turn(first))
        // It is not due, and then the first relay still syncs.
        #expect(try turn(second) == false)
        shop.rig.time.advance(by: .seconds(61))
        #expect(try turn(second) == false)
        #expect(try turn(first))
        try store.runBlocking(DirectoryRuns.release("staff", by: first))
        #expect(try turn(second) == false)
        shop.rig.time.advance(by: .seconds(61))
        #expect(try turn(second))
        // A relay that dies releases its turn.
        shop.rig.time.advance(by: .seconds(61))
        #expect(try turn(first) == false)
        try await store.removeDeadRelay(second, at: nil, now: shop.rig.time.now())
        #expect(try turn(first))
    }
}
