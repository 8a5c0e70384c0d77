import Log
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// Others that write the same rows are everyday, not trouble: what is told of them, and how a script is run again.
@Suite(.mayBlock) struct ConflictCountTests {
    /// A store whose first transactions end in the failures of a list, each at its COMMIT or before.
    private final class Bench {
        let database: TestDatabase
        let store: Store
        let left: Left

        /// What is to happen yet, and how many statements each transaction had.
        final class Left: Sendable {
            private let state: Mutex<(failures: [SessionFailure], runs: [Int])>

            init(_ failures: [SessionFailure]) { state = Mutex((failures, [])) }

            var runs: [Int] { state.withLock { $0.runs } }

            func next(_ steps: Int) -> SessionFailure? {
                state.withLock { state in
                    state.runs.append(steps)
                    return state.failures.isEmpty ? nil : state.failures.removeFirst()
                }
            }
        }

        init(_ failures: [SessionFailure], lane: Purpose = .writing) throws {
            database = try Engine.mariadb.database()
            try database.open().close()
            let left = Left(failures)
            self.left = left
            let isFirst = Mutex(true)
            var options = StoreOptions()
            options.deadline = .seconds(120)
            store = try Store.open(
                database.url, schema: .require, migrations: TestSchema.all, time: SystemTime(),
                log: Log(sink: database.sink), options: options
            ) { session in
                // The lane that writes is the first that is made.
                let isWriting = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                guard isWriting else { return session }
                return ObservedSession(session) { (steps, inner) throws(SessionFailure) in
                    let rows = try inner.run(steps)
                    if let failure = left.next(steps.count) { throw failure }
                    return rows
                }
            }
        }

        var said: [String] { database.sink.lines.map { "\($0)" } }
    }

    @Test(arguments: [SessionFailure.conflict("MariaDB 1213"), .conflict("MariaDB 1020"), .locked("MariaDB 1205")])
    func nineConflictsAreCountedButNotReported(_ failure: SessionFailure) async throws {
        let bench = try Bench(Array(repeating: failure, count: 9))
        defer { bench.store.close() }
        _ = try await bench.store.run(TestScript.counter(1))
        #expect(bench.store.conflicts == 9)
        #expect(bench.store.fault == nil)
        #expect(!bench.said.contains { $0.contains("store.failing") })
        // Nothing of the tries that came to nothing is left.
        #expect(try await bench.store.run(TestScript.raise(1)).row(1).integer(0) == 1)
    }

    @Test func tenConflictsInARowAreLoggedOnce() async throws {
        let bench = try Bench(Array(repeating: .conflict("MariaDB 1213"), count: 25))
        defer { bench.store.close() }
        _ = try await bench.store.run(TestScript.counter(1))
        #expect(bench.store.conflicts == 25)
        #expect(bench.said.count { $0.contains("store.failing") } == 1)
        let recovered = bench.said.filter { $0.contains("store.recovered") }
        #expect(recovered.count == 1)
        #expect(recovered.first?.contains("host=127.0.0.1:") == true)
        #expect(bench.store.fault == nil)
    }

    /// Of a batch only one may have been in the way: the others do not come back with it again.
    @Test func conflictingBatchRunsScriptByScript() throws {
        let left = Bench.Left([.conflict("MariaDB 1213")])
        let simulated = try Simulated(watch: { session in
            ObservedSession(session) { (steps, inner) throws(SessionFailure) in
                let rows = try inner.run(steps)
                if let failure = left.next(steps.count) { throw failure }
                return rows
            }
        })
        let kept = (0..<3).map { simulated.submit(TestScript.counter(Int64($0))) }
        simulated.settle()
        #expect(kept.allSatisfy { $0.answer != nil && $0.failure == nil })
        #expect(left.runs == [3, 1, 1, 1])
    }
}
