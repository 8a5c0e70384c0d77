import EventLoop
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

extension HarmedServerTests {
    /// A server that is down, hangs or is read-only: scripts get an answer in time, and succeed again after the
    /// recovery.
    struct OutageTests {
        /// A store whose clock the test moves, and a loop on which its scripts are submitted.
        private struct Bench {
            let time = TestTime()
            let database: TestDatabase
            let store: Store
            let caller: EventLoop

            init(_ server: MariaDBServer) throws {
                database = TestDatabase(
                    url: try StorageURL(server.url(try server.freshDatabase())), migrations: TestSchema.all)
                var options = StoreOptions()
                options.silence = .seconds(1)
                store = try database.open(time: time, options: options)
                caller = EventLoop.simulated(name: "caller", time: time) { _ in 0 }
            }

            /// Submits many scripts at once and returns the number of failures. Their deadline passes after the
            /// store has noticed its failure, which may be later on a slow machine.
            func failures(of count: Int) async -> Int {
                let kept = (0..<count).map { number in
                    store.submit(number.isMultiple(of: 2) ? TestScript.raise(1) : TestScript.value(of: 1), on: caller)
                }
                await database.sink.lines(of: "store.failing", count: 1)
                time.advance(by: StoreOptions().deadline)
                while caller.turn() {}
                return kept.count { $0.failure != nil }
            }

            /// Returns when a write and a read have succeeded; no time passes for them.
            func recover() async throws {
                _ = try await store.run(TestScript.raise(1))
                _ = try await store.run(TestScript.value(of: 1))
            }
        }

        @Test func stoppedServerIsReportedInTimeAndRecovers() async throws {
            let server = try MariaDBServer.victim()
            let bench = try Bench(server)
            defer { bench.store.close() }
            _ = try await bench.store.run(TestScript.counter(1))
            server.kill()
            #expect(await bench.failures(of: 500) == 500)
            #expect(bench.store.fault != nil)
            try server.start()
            try await bench.recover()
            #expect(bench.store.fault == nil)
        }

        @Test func hangingServerIsReportedInTimeAndRecovers() async throws {
            let server = try MariaDBServer.victim()
            let bench = try Bench(server)
            defer { bench.store.close() }
            _ = try await bench.store.run(TestScript.counter(1))
            server.pause()
            // Repeated several times, like clients that retry.
            for _ in 0..<3 { #expect(await bench.failures(of: 500) == 500) }
            server.resume()
            try await bench.recover()
            // Of the abandoned scripts, only writes that were already sent have run.
            let value = try await bench.store.run(TestScript.value(of: 1)).row(0).integer("n")
            let operations = try await bench.store.run(Script("test", reads: [Self.operations()]))
            #expect(value == (try operations.row(0).integer("count")))
        }

        private static let operations = Statement("SELECT COUNT(*) AS count FROM audit")

        enum Harm: CaseIterable { case gone, hangs }

        @Test(arguments: Harm.allCases) func nextHostIsTried(harm: Harm) async throws {
            let (first, second) = (try MariaDBServer.victim(), try MariaDBServer.shared())
            let name = try common(first, second)
            let url = try StorageURL("mariadb://root@127.0.0.1:\(first.port),127.0.0.1:\(second.port)/\(name)")
            try TestDatabase(url: try StorageURL(second.url(name)), migrations: TestSchema.all).open().close()
            var options = StoreOptions.patient
            options.silence = .seconds(1)
            let store = try TestDatabase(url: url, migrations: TestSchema.all).open(options: options)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1, 10))
            switch harm {
            case .gone: first.kill()
            case .hangs: first.pause()
            }
            defer {
                switch harm {
                case .gone: try? first.start()
                case .hangs: first.resume()
                }
            }
            _ = try await store.run(TestScript.counter(2, 20))
            #expect(try await store.run(TestScript.value(of: 2)).row(0).integer("n") == 20)
        }

        @Test func readOnlyHostIsSkipped() async throws {
            let (first, second) = (try MariaDBServer.victim(), try MariaDBServer.shared())
            let name = try common(first, second)
            for server in [first, second] {
                try TestDatabase(url: try StorageURL(server.url(name)), migrations: TestSchema.all).open().close()
                try server.sql("CREATE USER IF NOT EXISTS relay; GRANT ALL ON \(name).* TO relay")
            }
            let url = try StorageURL("mariadb://relay@127.0.0.1:\(first.port),127.0.0.1:\(second.port)/\(name)")
            let store = try TestDatabase(url: url, migrations: TestSchema.all).open(.require, options: .patient)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1, 10))
            try first.sql("SET GLOBAL read_only = ON")
            defer { try? first.sql("SET GLOBAL read_only = OFF") }
            _ = try await store.run(TestScript.counter(2, 20))
            _ = try await store.run(TestScript.raise(2))
            #expect(try await store.run(TestScript.raise(2)).row(1).integer("n") == 22)
            let reader = try StorageURL(first.url(name)).session(.reading)
            #expect(try reader.run([Self.ids()])[0].map { try $0.integer("id") } == [1])
        }

        private static let ids = Statement("SELECT id FROM counter")

        /// Creates a database with the same name on both servers.
        private func common(_ first: MariaDBServer, _ second: MariaDBServer) throws -> String {
            let name = "common\(Self.drawn.wrappingAdd(1, ordering: .relaxed).newValue)"
            for server in [first, second] { try server.sql("CREATE DATABASE \(name)") }
            return name
        }

        private static let drawn = Atomic<Int>(0)

        @Test func wrongPasswordIsReportedAtOnce() throws {
            let server = try MariaDBServer.shared()
            try server.sql("CREATE OR REPLACE USER guarded IDENTIFIED BY 'right'")
            let database = try server.freshDatabase()
            try server.sql("GRANT ALL ON \(database).* TO guarded")
            let wrong = try StorageURL("mariadb://guarded:wrong@127.0.0.1:\(server.port)/\(database)")
            let failure = #expect(throws: StoreFailure.self) {
                try TestDatabase(url: wrong, migrations: TestSchema.all).open()
            }
            guard case .unavailable(let message)? = failure else {
                Issue.record("\(String(describing: failure)) is not .unavailable")
                return
            }
            #expect(message.contains("1045"))
            #expect(!message.contains("wrong"))
            let right = try StorageURL("mariadb://guarded:right@127.0.0.1:\(server.port)/\(database)")
            try TestDatabase(url: right, migrations: TestSchema.all).open().close()
        }

        @Test func passwordFileAndSocketAreSupported() async throws {
            let server = try MariaDBServer.shared()
            let directory = try TemporaryDirectory()
            let database = try server.freshDatabase()
            try server.sql("CREATE OR REPLACE USER filed IDENTIFIED BY 's3cret'; GRANT ALL ON \(database).* TO filed")
            let file = directory("password")
            try write("s3cret\n", to: file)
            let url = try StorageURL(
                "mariadb://filed@localhost/\(database)?socket=\(server.socket)&password_file=password",
                relativeTo: directory.path)
            let store = try TestDatabase(url: url, migrations: TestSchema.all).open()
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1))
            #expect(try await store.run(TestScript.raise(1)).row(1).integer("n") == 1)
            withExtendedLifetime(directory) {}
        }
    }
}
