import Domain
import GSM
import Relay
import TestSupport
import Testing
import World

@testable import Storage

extension HarmedServerTests {
    /// A connection that ends at a COMMIT: the store looks up whether the COMMIT was done, and nothing is done
    /// twice.
    struct UnknownCommitTests {
        /// A store that reaches its server through a proxy.
        private func withProxy(
            _ server: MariaDBServer, _ migrations: [Migration] = TestSchema.all,
            _ body: (Store, CutProxy) async throws -> Void
        ) async throws {
            let proxy = try CutProxy(to: server.port)
            defer { proxy.close() }
            let url = try StorageURL(server.url(try server.freshDatabase(), port: proxy.port))
            let store = try TestDatabase(url: url, migrations: migrations).open(options: .patient)
            defer { store.close() }
            try await body(store, proxy)
        }

        @Test(arguments: [1, 20])
        func commitWithALostAnswerAppliesOnce(_ count: Int) async throws {
            try await withProxy(try MariaDBServer.shared()) { store, proxy in
                _ = try await store.run(TestScript.counter(1))
                for _ in 0..<5 {
                    let before = try await store.run(TestScript.value(of: 1)).row(0).integer("n")
                    proxy.cutNextCommit(.after)
                    #expect(try await raise(store, count) == count)
                    #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == before + Int64(count))
                }
            }
        }

        @Test(arguments: [1, 20])
        func unseenCommitAppliesOnce(_ count: Int) async throws {
            try await withProxy(try MariaDBServer.shared()) { store, proxy in
                _ = try await store.run(TestScript.counter(1))
                for _ in 0..<5 {
                    let before = try await store.run(TestScript.value(of: 1)).row(0).integer("n")
                    proxy.cutNextCommit(.before)
                    #expect(try await raise(store, count) == count)
                    #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == before + Int64(count))
                }
            }
        }

        /// A message that a gateway accepted is charged once in the usage table.
        @Test func smsUsageIsRecordedOnce() async throws {
            try await withProxy(try MariaDBServer.shared(), Migration.all) { store, proxy in
                let sent = SMSUsage(
                    Sample.id(1), at: Sample.now, prefix: NumberPrefix.country(of: "+49"), parts: 2, cost: 150_000)
                proxy.cutNextCommit(.after)
                try await store.addUsage(sent)
                let once = try await store.run(SMSUsageReport.query(of: Sample.now)).total
                #expect(once == .init(prefix: "", messages: 0, sent: 1, parts: 2, cost: 150_000))
                proxy.cutNextCommit(.before)
                try await store.addUsage(
                    SMSUsage(Sample.id(2), at: Sample.now, prefix: sent.prefix, parts: 1, cost: 75_000))
                // A gateway accepts the message again, for example after an operator's replay.
                try await store.addUsage(sent)
                let account = try await store.run(SMSUsageReport.query(of: Sample.now)).total
                #expect(account == .init(prefix: "", messages: 0, sent: 3, parts: 5, cost: 375_000))
            }
        }

        /// The old connection commits while the new one looks up the operation.
        @Test func pendingCommitIsAwaited() async throws {
            try await withProxy(try MariaDBServer.shared()) { store, proxy in
                _ = try await store.run(TestScript.counter(1))
                proxy.cutNextCommit(
                    .late {
                        // Wait until the look-up is blocked by the lock of the open transaction.
                        for _ in 0..<100 where (try? store.runBlocking(Self.lockWaits))?[0].isEmpty != false {}
                    })
                let rows = try await store.run(TestScript.raiseAgainAndAgain(1))
                #expect(try rows.row(0).integer("done") == 1)
                #expect(try rows.row(1).integer("n") == 1)
            }
        }

        private static let lockWaits = Script("test.waits", reads: [waiting()])
        private static let waiting = Statement(
            """
            SELECT 1 FROM information_schema.innodb_trx t
            JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
            WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()
            """)

        @Test func refusedOperationStaysRefusedAfterALostCommit() async throws {
            try await withProxy(try MariaDBServer.shared()) { store, proxy in
                _ = try await store.run(TestScript.counter(1, 7))
                proxy.cutNextCommit(.after)
                let rows = try await store.run(TestScript.raise(1, below: 7))
                #expect(try rows.row(0).integer("done") == 0)
                #expect(try rows.row(1).integer("n") == 7)
            }
        }

        @Test func commitDuringAServerKillAppliesOnce() async throws {
            let server = try MariaDBServer.victim()
            try await withProxy(server) { store, proxy in
                _ = try await store.run(TestScript.counter(1))
                for round in 1...4 {
                    proxy.cutNextCommit(
                        .during {
                            server.kill()
                            do { try server.start() } catch { Issue.record(error) }
                        })
                    #expect(try await raise(store, 5) == 5)
                    #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == Int64(5 * round))
                }
            }
        }

        /// Whatever result the clients got: each operation with a row raised the counter once, and no other
        /// operation did.
        @Test func serverKillUnderLoadLosesAndDuplicatesNothing() async throws {
            let server = try MariaDBServer.victim()
            let url = try StorageURL(server.url(try server.freshDatabase()))
            let store = try TestDatabase(url: url, migrations: TestSchema.all).open()
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1))
            let acknowledged = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        var count = 0
                        for _ in 0..<150 where (try? await store.run(TestScript.raise(1))) != nil { count += 1 }
                        return count
                    }
                }
                group.addTask {
                    for _ in 0..<3 {
                        server.kill()
                        do { try server.start() } catch { Issue.record(error) }
                        _ = try? await store.run(TestScript.value(of: 1))
                    }
                    return 0
                }
                return await group.reduce(0, +)
            }
            let value = try await store.run(TestScript.value(of: 1)).row(0).integer("n")
            let operations = try await store.run(Script("test", reads: [Self.operations()])).row(0).integer("count")
            #expect(value == operations)
            #expect(value >= Int64(acknowledged))
            #expect(acknowledged > 0)
        }

        private static let operations = Statement("SELECT COUNT(*) AS count FROM audit")

        /// Raises the counter in `count` scripts at once, and returns how many were admitted.
        private func raise(_ store: Store, _ count: Int) async throws -> Int {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<count {
                    group.addTask { Int(try await store.run(TestScript.raise(1)).row(0).integer("done")) }
                }
                return try await group.reduce(0, +)
            }
        }
    }
}
