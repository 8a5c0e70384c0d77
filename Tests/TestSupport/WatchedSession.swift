import Log
import Storage
import World

/// A session that does what another does, while a test looks on.
///
/// Guard: like every session, it is used by one thread at a time.
package final class WatchedSession: Session {
    package typealias Run = @Sendable ([Step], any Session) throws(SessionFailure) -> [Rows]

    private let inner: any Session
    private let run: Run
    private let beforeCommit: () -> Void

    /// - Parameter run: what runs the steps, on the session that it is given.
    package init(_ inner: any Session, run: @escaping Run) {
        self.inner = inner
        self.run = run
        beforeCommit = {}
    }

    package init(_ inner: any Session, beforeCommit: @escaping () -> Void) {
        self.inner = inner
        self.beforeCommit = beforeCommit
        run = { (steps, inner) throws(SessionFailure) in try inner.run(steps) }
    }

    package func begin(_ purpose: Purpose) throws(SessionFailure) { try inner.begin(purpose) }
    package func run(_ steps: [Step]) throws(SessionFailure) -> [Rows] { try run(steps, inner) }
    package func rollBack() { inner.rollBack() }
    package func execute(_ sql: String) throws(SessionFailure) { try inner.execute(sql) }
    package func close() { inner.close() }
    package var changes: Int64 { inner.changes }
    package var place: SessionPlace? { inner.place }

    package func commit() throws(SessionFailure) {
        beforeCommit()
        try inner.commit()
    }
}

extension Store {
    /// On tables that are there. All that it runs, on either lane, goes through `run`.
    package static func watched(at url: StorageURL, run: @escaping WatchedSession.Run) throws -> Store {
        var options = StoreOptions()
        options.deadline = .seconds(30)
        return try open(
            url, time: SystemTime(), log: Log(time: SystemTime(), sink: MemorySink()), options: options
        ) { WatchedSession($0, run: run) }
    }
}
