import Storage
import Synchronization
import TestSupport

/// What a store was made to run, in order.
final class Statements: Sendable {
    private let run = Mutex<[String]>([])

    /// Since it was taken last.
    func take() -> [String] {
        run.withLock { run in
            defer { run = [] }
            return run
        }
    }

    func store(at url: StorageURL) throws -> Store {
        try Store.watched(at: url) { (steps, session) throws(SessionFailure) in
            self.run.withLock { $0 += steps.map(\.statement.sql) }
            return try session.run(steps)
        }
    }
}
