import EventLoop
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

extension HarmedServerTests {
    /// A server that is gone, hangs, or will not write: an answer in time, and work again when it is back.
    struct OutageTests {
        private static let deadline = Duration.milliseconds(1500)

        private func open(_ server: MariaDBServer) throws -> Store {
            var options = StoreOptions()
            options.deadline = Self.deadline
            let url = try StorageURL(server.url(try server.freshDatabase()))
            return try TestDatabase(url: url, migrations: TestSchema.all).open(options: options)
        }

        /// Many at once on a loop, as requests are: how they ended and how long that took.
        private func submit(_ count: Int, to store: Store) async throws -> (failures: Int, took: Duration) {
            let group = try LoopGroup.start(count: 1, time: SystemTime())
            defer { group.stopAndJoin() }
            let loop = group.loops[0]
            let started = SystemTime().instant()
            let failures = await loop.perform {
                await withTaskGroup(of: Int.self) { tasks in
                    for number in 0..<count {
                        tasks.addTask {
                            let script = number.isMultiple(of: 2) ? TestScript.raise(1) : TestScript.value(of: 1)
                            return (try? await store.run(script)) == nil ? 1 : 0
                        }
                    }
                    return await tasks.reduce(0, +)
                }
            }
            return (failures, SystemTime().instant() - started)
        }

        /// Until a write and a read go well again.
        private func recovered(_ store: Store) async -> Bool {
            for _ in 0..<40 {
                if (try? await store.run(TestScript.raise(1))) != nil,
                    (try? await store.run(TestScript.value(of: 1))) != nil
                {
                    return true
                }
            }
            return false
        }

        @Test func aServerThatIsGoneIsAnsweredForInTimeAndComesBack() async throws {
            let server = try MariaDBServer.victim()
            let store = try open(server)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1))
            server.kill()
            let (failures, took) = try await submit(500, to: store)
            #expect(failures == 500)
            #expect(took < Self.deadline + .seconds(Sanitizer.patience))
            #expect(store.trouble != nil)
            try server.start()
            #expect(await recovered(store))
            #expect(store.trouble == nil)
        }

        @Test func aServerThatHangsIsAnsweredForInTimeAndComesBack() async throws {
            let server = try MariaDBServer.victim()
            let store = try open(server)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1))
            server.pause()
            // Several times over, as clients do that try again.
            for _ in 0..<3 {
                let (failures, took) = try await submit(500, to: store)
                #expect(failures == 500)
                #expect(took < Self.deadline + .seconds(Sanitizer.patience))
            }
            server.resume()
            #expect(await recovered(store))
            // Nothing of what was given up was done in the meantime but the writes that were on their way.
            let value = try await store.run(TestScript.value(of: 1))[0][0].integer(0)
            let operations = try await store.run(Script("test", reads: [Step(Self.operations)]))[0][0].integer(0)
            #expect(value == operations)
        }

        private static let operations = Statement("SELECT COUNT(*) FROM audit")

        @Test func theNextHostIsTriedWhenOneIsGone() async throws {
            let (first, second) = (try MariaDBServer.victim(), try MariaDBServer.shared())
            let name = try common(first, second)
            let url = try StorageURL("mariadb://root@127.0.0.1:\(first.port),127.0.0.1:\(second.port)/\(name)")
            try TestDatabase(url: try StorageURL(second.url(name)), migrations: TestSchema.all).open().close()
            let store = try TestDatabase(url: url, migrations: TestSchema.all).open(options: .patient)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1, 10))
            first.kill()
            defer { try? first.start() }
            // The other server has no such row; it was not this test's to bring it there.
            _ = try await store.run(TestScript.counter(1, 20))
            #expect(try await store.run(TestScript.value(of: 1))[0][0].integer(0) == 20)
        }

        @Test func theNextHostIsTriedWhenOneHangs() async throws {
            let (first, second) = (try MariaDBServer.victim(), try MariaDBServer.shared())
            let name = try common(first, second)
            let url = try StorageURL("mariadb://root@127.0.0.1:\(first.port),127.0.0.1:\(second.port)/\(name)")
            try TestDatabase(url: try StorageURL(second.url(name)), migrations: TestSchema.all).open().close()
            let store = try TestDatabase(url: url, migrations: TestSchema.all).open(options: .patient)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1, 10))
            first.pause()
            defer { first.resume() }
            _ = try await store.run(TestScript.counter(1, 20))
            #expect(try await store.run(TestScript.value(of: 1))[0][0].integer(0) == 20)
        }

        @Test func theNextHostIsTriedWhenOneWillNotWrite() async throws {
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
            _ = try await store.run(TestScript.counter(1, 20))
            _ = try await store.run(TestScript.raise(1))
            let writer = try url.session(.writing)
            #expect(try writer.run([Step(Self.value)])[0][0].integer(0) == 10)
        }

        private static let value = Statement("SELECT n FROM counter WHERE id = 1")

        /// A database of one name on both.
        private func common(_ first: MariaDBServer, _ second: MariaDBServer) throws -> String {
            let name = "common\(Self.drawn.wrappingAdd(1, ordering: .relaxed).newValue)"
            for server in [first, second] { try server.sql("CREATE DATABASE \(name)") }
            return name
        }

        private static let drawn = Atomic<Int>(0)

        @Test func aWrongPasswordSaysSoAtOnce() throws {
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

        @Test func aPasswordMayStandInAFileAndTheServerBehindASocket() async throws {
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
            #expect(try await store.run(TestScript.raise(1))[1][0].integer(0) == 1)
            withExtendedLifetime(directory) {}
        }
    }
}
