import Log
import Storage
import World

/// A session that forwards to another one, so that a test can observe or replace its operations.
///
/// Guard: like every session, it is used by one thread at a time.
package final class ObservedSession: Session {
    package typealias Run = @Sendable ([BoundStatement], any Session) throws(SessionFailure) -> [Rows]
    package typealias Commit = (any Session) throws(SessionFailure) -> Void

    private let inner: any Session
    private let run: Run
    private let commitInner: Commit

    /// Wraps a session.
    ///
    /// - Parameters:
    ///   - run: runs the statements, on the session that it receives.
    ///   - commit: commits, on the session that it receives.
    package init(
        _ inner: any Session, run: @escaping Run,
        commit: @escaping Commit = { (inner) throws(SessionFailure) in try inner.commit() }
    ) {
        self.inner = inner
        self.run = run
        commitInner = commit
    }

    package convenience init(_ inner: any Session, beforeCommit: @escaping () -> Void) {
        self.init(
            inner, run: { (steps, inner) throws(SessionFailure) in try inner.run(steps) },
            commit: { (inner) throws(SessionFailure) in
                beforeCommit()
                try inner.commit()
            })
    }

    package func begin(_ purpose: Purpose) throws(SessionFailure) { try inner.begin(purpose) }
    package func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] { try run(steps, inner) }
    package func rollBack() { inner.rollBack() }
    package func execute(_ sql: String) throws(SessionFailure) { try inner.execute(sql) }
    package func close() { inner.close() }
    package var changes: Int64 { inner.changes }
    package var place: SessionHost? { inner.place }

    package func commit() throws(SessionFailure) { try commitInner(inner) }
}

extension Store {
    /// Opens a store with existing tables. All statements of both lanes go through `run`.
    package static func watched(
        at url: StorageURL, rows: RowAuthenticator? = nil,
        commit: @escaping @Sendable (any Session) throws(SessionFailure) -> Void = {
            (session) throws(SessionFailure) in try session.commit()
        },
        run: @escaping ObservedSession.Run
    ) throws -> Store {
        var options = StoreOptions.patient
        options.rows = rows
        return try open(
            url, time: SystemTime(), log: Log(time: SystemTime(), sink: MemorySink()), options: options
        ) { ObservedSession($0, run: run, commit: commit) }
    }
}
