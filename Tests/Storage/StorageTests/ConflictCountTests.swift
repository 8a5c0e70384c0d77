import Log
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// Conflicts with other writers of the same rows are normal: what is logged and counted, and how a script is run
/// again.
@Suite(.mayBlock) struct ConflictCountTests {
    /// A store whose first transactions fail with the given failures, at COMMIT or before it.
    private final class Bench {
        let database: TestDatabase
        let store: Store
        let left: Left

        /// The failures that are still to come, and the number of statements of each transaction.
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
                // The lane that writes opens the first session.
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
        // The failed attempts left nothing behind.
        #expect(try await bench.store.run(TestScript.raise(1)).row(1).integer("n") == 1)
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

    /// Only one script of a batch may have caused the conflict, so the others do not share its next transaction.
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
