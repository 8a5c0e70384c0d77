import Storage
import Synchronization
import TestSupport

/// The statements that a store has run, in order.
final class Statements: Sendable {
    private let run = Mutex<[String]>([])

    /// Returns the statements since the last call.
    func take() -> [String] {
        run.withLock { run in
            defer { run = [] }
            return run
        }
    }

    /// Leaves out the statements that check and sign rows. They follow the rows that a script
    /// declares and those that it has changed.
    private static func isOwn(_ sql: String) -> Bool {
        !sql.contains(", mac FROM ") && !sql.contains(" SET mac = :mac")
    }

    func store(at url: StorageURL) throws -> Store {
        try Store.watched(at: url, rows: RelayRig.rowAuthenticator()) { (steps, session) throws(SessionFailure) in
            self.run.withLock { $0 += steps.map(\.statement.sql).filter(Self.isOwn) }
            return try session.run(steps)
        }
    }
}
