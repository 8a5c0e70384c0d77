import Log
import Relay
import TestSupport
import Testing
import World

@testable import Storage

extension HarmedServerTests {
    /// A store that knows that no host accepts connections fails at once, without a wait.
    struct UnreachableHostTests {
        @Test func refusalByEveryHostFailsAtOnce() async throws {
            let server = try MariaDBServer.victim()
            let database = TestDatabase(
                url: try StorageURL(server.url(try server.freshDatabase())), migrations: TestSchema.all)
            let time = TestTime()
            var options = StoreOptions()
            // So that the deadline never causes an answer.
            options.deadline = .seconds(1_000_000_000)
            let store = try database.open(time: time, options: options)
            defer { store.close() }
            _ = try await store.run(TestScript.counter(1))
            server.kill()
            let isOver = Flag()
            async let first = store.result(of: TestScript.raise(1))
            async let second = store.result(of: TestScript.value(of: 1))
            async let passing: Void = pass(time, until: isOver)
            let answers = [await first, await second]
            isOver.set()
            await passing
            for answer in answers {
                guard case .failure(.unavailable(let why)) = answer else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(why.contains("MariaDB 200"), "\(why)")
            }
            // From then on each answer comes without a wait.
            for _ in 0..<3 {
                for script in [TestScript.raise(1), TestScript.value(of: 1)] {
                    #expect(throws: StoreFailure.self) { try store.runBlocking(script) }
                }
            }
            try server.start()
            #expect(try await store.run(TestScript.raise(1)).row(1).integer("n") == 1)
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 1)
            #expect(store.fault == nil)
        }

        private func pass(_ time: TestTime, until isOver: Flag) async {
            while !isOver.isSet {
                time.advance(by: .seconds(2))
                await Task.yield()
            }
        }

        /// Both lanes move to the host to which one of them had to move, and log it.
        @Test func lanesMoveToTheSameHostAndLogIt() async throws {
            let (first, second) = (try MariaDBServer.victim(), try MariaDBServer.shared())
            let name = try second.freshDatabase()
            try first.sql("CREATE OR REPLACE DATABASE \(name)")
            for server in [first, second] {
                try TestDatabase(url: try StorageURL(server.url(name)), migrations: TestSchema.all).open().close()
            }
            let places = [first, second].map { "127.0.0.1:\($0.port)" }
            let database = TestDatabase(
                url: try StorageURL("mariadb://root@\(places.joined(separator: ","))/\(name)"),
                migrations: TestSchema.all)
            let store = try database.open(.require, options: .patient)
            defer { store.close() }
            #expect(store.hosts == places)
            #expect(places.map(store.connections) == [2, 0])
            _ = try await store.run(TestScript.counter(1, 10))
            first.kill()
            // Only the lane that writes meets the end of its connection.
            _ = try await store.run(TestScript.counter(1, 20))
            try first.start()
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 20)
            #expect(places.map(store.connections) == [0, 2])
            let connected = database.sink.lines.filter { ObservedSink.isOf("store.connected", $0) }
            #expect(connected.map { line in places.firstIndex { line.contains("host=\($0)") } } == [0, 0, 1, 1])
            #expect(connected.filter { $0.contains("level=notice") }.count == 2)
            let recovered = database.sink.lines.filter { ObservedSink.isOf("store.recovered", $0) }
            #expect(recovered.allSatisfy { $0.contains("host=\(places[1])") } && !recovered.isEmpty)
        }
    }
}

extension Store {
    fileprivate func result(of script: Script) async -> ScriptResult {
        do throws(StoreFailure) {
            return .success(try await run(script))
        } catch {
            return .failure(error)
        }
    }
}
