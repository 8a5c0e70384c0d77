import Bytes
import Domain
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// A store over a cluster of three nodes, while nodes die, hang, and write the same rows.
///
/// The times are Galera's: if a node disappears without notice, all others wait six seconds before they continue.
@Suite(
    .serialized, .timeLimit(.minutes(15)), .mayBlock,
    .enabled(if: GaleraCluster.isInstalled, "Galera is not installed; run: dev/need test"),
    .enabled(if: !Sanitizer.isOn, "the nodes are not built with a sanitizer"))
struct GaleraTests {
    /// A database on all nodes, and stores that use it.
    struct Bench {
        let cluster: GaleraCluster
        let name: String
        let sink = ObservedSink()

        init(_ migrations: [Migration] = TestSchema.all) throws {
            cluster = try GaleraCluster.shared()
            try cluster.mend()
            name = try cluster.freshDatabase()
            try database(first: 0, migrations).open().close()
        }

        func database(first: Int, _ migrations: [Migration] = TestSchema.all) throws -> TestDatabase {
            TestDatabase(url: try StorageURL(cluster.url(name, first: first)), migrations: migrations)
        }

        func place(_ node: Int) -> String { "127.0.0.1:\(cluster.nodes[node].port)" }

        /// Reads the counter over a connection to that node alone.
        func value(at node: Int) throws -> Int64 {
            let session = try url(of: node).session(.reading)
            defer { session.close() }
            try session.begin(.reading)
            return try session.run(TestScript.value(of: 1).reads).row(0).integer("n")
        }

        func url(of node: Int) throws -> StorageURL { try StorageURL("mariadb://root@\(place(node))/\(name)") }

        func operations(_ store: Store) async throws -> Int64 {
            try await store.run(Script("test", reads: [Self.countOperations()])).row(0).integer("count")
        }

        private static let countOperations = Statement("SELECT COUNT(*) AS count FROM audit")
    }

    /// Raises the counter `count` times from each of some callers, and returns the number of acknowledged raises.
    private func raise(_ store: Store, callers: Int = 4, _ count: Int, _ noted: Progress? = nil) async -> Int64 {
        await withTaskGroup(of: Int64.self) { group in
            for _ in 0..<callers {
                group.addTask {
                    var acknowledged: Int64 = 0
                    for _ in 0..<count where (try? await store.run(TestScript.raise(1))) != nil {
                        acknowledged += 1
                        noted?.note()
                    }
                    return acknowledged
                }
            }
            return await group.reduce(0, +)
        }
    }

    /// A counter of acknowledged raises, which resumes its waiter when there are enough.
    private final class Progress: Sendable {
        private let state = Mutex<(count: Int, waiting: CheckedContinuation<Void, Never>?)>((0, nil))
        private let enough: Int

        init(_ enough: Int) { self.enough = enough }

        func note() {
            let waiting = state.withLock { state in
                state.count += 1
                guard state.count >= enough else { return nil as CheckedContinuation<Void, Never>? }
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume()
        }

        func wait() async {
            await withCheckedContinuation { continuation in
                let isEnough = state.withLock { state in
                    if state.count < enough { state.waiting = continuation }
                    return state.count >= enough
                }
                if isEnough { continuation.resume() }
            }
        }
    }

    @Test func killedNodeLosesAndDuplicatesNothing() async throws {
        let bench = try Bench()
        let database = try bench.database(first: 0)
        let store = try database.open(.require, options: .patient)
        defer { store.close() }
        _ = try await store.run(TestScript.counter(1))
        #expect((0..<3).map { store.connections(to: bench.place($0)) } == [2, 0, 0])

        let progress = Progress(20)
        async let raised = raise(store, 40, progress)
        await progress.wait()
        bench.cluster.nodes[0].kill()
        let acknowledged = await raised
        // Repeats until the other nodes are ready.
        while (try? await store.run(TestScript.raise(1))) == nil {}

        // Both lanes use one node, which has every row.
        let value = try await store.run(TestScript.value(of: 1)).row(0).integer("n")
        #expect(value > acknowledged)
        #expect(try await bench.operations(store) == value)
        let node = try #require((1..<3).first { store.connections(to: bench.place($0)) == 2 })
        let moved = database.sink.lines.filter { ObservedSink.isOf("store.connected", $0) }
        #expect(moved.count >= 4 && moved.last?.contains("host=\(bench.place(node))") == true, "\(moved)")

        try bench.cluster.nodes[0].restart()
        #expect(try bench.value(at: 0) == value)
        // The store does not return to the first node: it stays at a node that works.
        _ = try await store.run(TestScript.raise(1))
        #expect(store.connections(to: bench.place(node)) == 2)
    }

    /// A paused node that continues still believes that it belongs to the majority, until it hears from the others.
    @Test func pausedNodeServesNoStaleReads() async throws {
        let bench = try Bench()
        let database = try bench.database(first: 0)
        let store = try database.open(.require, options: .patient)
        defer { store.close() }
        _ = try await store.run(TestScript.counter(1))
        let reader = try bench.url(of: 0).session(.reading)
        defer { reader.close() }
        try reader.begin(.reading)
        #expect(try reader.run(TestScript.value(of: 1).reads).row(0).integer("n") == 0)

        let node = bench.cluster.nodes[0]
        node.freeze()
        async let written = store.run(TestScript.raise(1))
        async let read = store.run(TestScript.value(of: 1))
        #expect(try await written.row(1).integer("n") == 1)
        #expect([0, 1].contains(try await read.row(0).integer("n")))
        #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 1)
        #expect(store.connections(to: bench.place(0)) == 0)

        node.thaw()
        switch Result(catching: { () throws(SessionFailure) in try reader.run(TestScript.value(of: 1).reads) }) {
        case .success(let rows): #expect(try rows.row(0).integer("n") == 1)
        // Either the node reports that it is outside the majority, or it waited in vain for the transactions of the
        // others.
        case .failure(.lost), .failure(.locked): break
        case .failure(let failure): throw failure
        }
        try node.awaitSynced(of: 3)
        #expect(try bench.value(at: 0) == 1)
    }

    @Test func lossOfQuorumAcknowledgesNothingAndRecovers() async throws {
        let bench = try Bench()
        let database = try bench.database(first: 0)
        let store = try database.open(.require, options: .patient)
        defer { store.close() }
        _ = try await store.run(TestScript.counter(1))
        for node in bench.cluster.nodes.dropFirst() { node.freeze() }
        async let written = store.run(TestScript.raise(1))
        // A read succeeds until the node has noticed, and is refused from then on. So the node returns no stale
        // row.
        while let rows = try? await store.run(TestScript.value(of: 1)) { #expect(try rows.row(0).integer("n") == 0) }
        let isAcknowledged = (try? await written) != nil
        #expect(!isAcknowledged)
        for node in bench.cluster.nodes.dropFirst() { node.thaw() }
        for node in bench.cluster.nodes { try node.awaitSynced(of: 3) }
        while (try? await store.run(TestScript.raise(1))) == nil {}
        let value = try await store.run(TestScript.value(of: 1)).row(0).integer("n")
        #expect(try await bench.operations(store) == value)
        for node in 0..<3 { #expect(try bench.value(at: node) == value) }
        #expect(store.fault == nil)
    }

    /// Certification finds the conflicts at COMMIT, where a single server would use locks.
    @Test func concurrentWritesAtTwoNodesApplyOnce() async throws {
        let bench = try Bench()
        let (first, second) = (try bench.database(first: 0), try bench.database(first: 1))
        let stores = try [first, second].map { try $0.open(.require, options: .patient) }
        defer { for store in stores { store.close() } }
        _ = try await stores[0].run(TestScript.counter(1))
        var rounds: Int64 = 0
        repeat {
            rounds += 1
            async let one = raise(stores[0], 25)
            async let two = raise(stores[1], 25)
            #expect(await one + two == 200)
        } while stores.allSatisfy { $0.conflicts == 0 } && rounds < 50
        #expect(stores.contains { $0.conflicts > 0 })
        for (number, store) in stores.enumerated() {
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 200 * rounds)
            #expect(store.fault == nil)
            #expect(store.connections(to: bench.place(number)) == 2)
        }
        #expect(try await bench.operations(stores[0]) == 200 * rounds)
    }

    @Test func twoRelaysAtTwoNodesNeverLeaseOneRow() async throws {
        let bench = try Bench(Migration.all)
        let stores = try (0..<2).map { try bench.database(first: $0, Migration.all).open(.require, options: .patient) }
        defer { for store in stores { store.close() } }
        let now = Timestamp(seconds: 1_800_000_000)
        let relays: [RelayID] = [Sample.id(1), Sample.id(2)]
        for relay in relays {
            _ = try await stores[0].run(
                Script("relay", writes: [Self.relay(relay: .id(relay), now: .timestamp(now))]))
        }
        let count = 300
        _ = try await stores[0].run(
            Script(
                "due",
                writes: (0..<count).map { number in
                    let id: OutboxEntryID = Sample.id(1000 + number)
                    return Self.due(entry: .id(id), now: .timestamp(now))
                }))
        let leased = try await withThrowingTaskGroup(of: [OutboxEntryID].self) { group in
            for (number, store) in stores.enumerated() {
                group.addTask {
                    var mine: [OutboxEntryID] = []
                    var round = 0
                    while true {
                        round += 1
                        let lease = OutboxLease(
                            id: Sample.id(100_000 * (number + 1) + round), relay: relays[number], now: now,
                            leasedUntil: now + .seconds(60), messagesLeasedUntil: now + .seconds(60), limit: 10)
                        let rows = try await store.lease(lease).rows
                        guard !rows.isEmpty else { return mine }
                        mine += rows.map(\.id)
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(leased.map(\.count).reduce(0, +) == count)
        #expect(Set(leased.joined()).count == count)
    }

    /// Two relays at two nodes try PINs of one phone at the same time. Certification refuses one of two counts at
    /// COMMIT, and its relay counts again.
    @Test func twoRelaysAtTwoNodesCountWrongPINsExactly() async throws {
        let bench = try Bench(Migration.all)
        let stores = try (0..<2).map { try bench.database(first: $0, Migration.all).open(.require, options: .patient) }
        defer { for store in stores { store.close() } }
        try await Sample.fill(stores[0], at: try bench.url(of: 0))
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        var number = 0
        repeat {
            number += 1
            let phone = PhoneCredential(
                id: Sample.id(number), user: Sample.id(number), key: Sample.key(number), publicKey: [],
                website: WebsiteRow(id: Sample.website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
                failedAt: nil, isCertified: true)
            let set = PINChange(of: phone, .set, key: [4], pukKey: [4], present: PhonePIN(), at: Sample.now)
            #expect(try await stores[0].store(set, as: operations.new()) == true)
            let wrong = WrongPIN(.pin, of: phone, version: 1, challenge: nil, at: Sample.now + .seconds(1))
            let counted = try await withThrowingTaskGroup(of: CountedPIN?.self) { group in
                for guess in 0..<8 {
                    let (store, operation) = (stores[guess % 2], operations.new())
                    group.addTask { try await store.countWrong(wrong, as: operation) }
                }
                return try await group.reduce(into: [CountedPIN?]()) { $0.append($1) }
            }
            #expect(counted.count { $0?.isNew == true } == PhonePIN.tries)
            #expect(counted.count { $0?.isLocking == true } == 1)
            for store in stores { #expect(try await store.pin(of: phone)?.failures == PhonePIN.tries) }
        } while stores.allSatisfy { $0.conflicts == 0 } && number < Sample.count
        #expect(stores.contains { $0.conflicts > 0 })
        let events = try await stores[1].run(Script("events", reads: [Self.countedPINs()]))[0].map {
            "\(try $0.text("event")) \(try $0.integer("events"))"
        }
        #expect(events == ["pin.locked \(number)", "pin.wrong \((PhonePIN.tries - 1) * number)"])
    }

    private static let countedPINs = Statement(
        """
        SELECT event, count(*) AS events FROM audit WHERE event IN ('pin.wrong', 'pin.locked')
        GROUP BY event ORDER BY event
        """)
    private static let relay = Statement("INSERT INTO relay (id, beat, started_at) VALUES (:relay, 0, :now)")
    private static let due = Statement(
        "INSERT INTO outbox (id, kind, due_at, attempts) VALUES (:entry, 'expiry', :now, 0)")
}
