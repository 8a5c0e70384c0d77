import EventLoop
import Log
import Synchronization
import World

@testable import Storage

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
        func lane(_ purpose: Purpose) throws -> Lane {
            Lane(
                purpose,
                session: Noting(try url.session(purpose == .reading ? .reading : .writing), self),
                worker: try WorkerThread(name: "test"), time: SystemTime(), limits: Lane.Limits(),
                log: Log(time: SystemTime(), sink: MemorySink()))
        }
        return Store(
            writes: try lane(.writing), reads: try lane(.reading), schemaVersion: 1, limit: .seconds(30),
            time: SystemTime())
    }

    /// Guard: like every session, it is used by its lane's thread alone.
    private final class Noting: Session {
        private let inner: any Session
        private let statements: Statements

        init(_ inner: any Session, _ statements: Statements) {
            self.inner = inner
            self.statements = statements
        }

        func begin(_ purpose: Purpose) throws(SessionFailure) { try inner.begin(purpose) }
        func commit() throws(SessionFailure) { try inner.commit() }
        func rollBack() { inner.rollBack() }
        func execute(_ sql: String) throws(SessionFailure) { try inner.execute(sql) }
        func close() { inner.close() }
        var changes: Int64 { inner.changes }

        func run(_ steps: [Step]) throws(SessionFailure) -> [Rows] {
            statements.run.withLock { $0 += steps.map(\.statement.sql) }
            return try inner.run(steps)
        }
    }
}
