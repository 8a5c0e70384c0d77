@testable import Storage

/// A session whose program dies after some changes of the schema: what they did remains, as far as the
/// engine keeps it, and nothing else happens.
final class DyingSession: Session {
    private let inner: any Session
    private var left: Int
    /// Whether the program has died.
    private(set) var isDead = false

    /// - Parameter left: the number of statements of the schema that still run. The next call of any kind
    ///   is the end.
    init(_ inner: any Session, after left: Int) {
        self.inner = inner
        self.left = left
    }

    private func live() throws(SessionFailure) {
        guard left == 0 else { return }
        if !isDead {
            isDead = true
            // The connection of a dead program ends, and with it its transaction and its locks.
            inner.close()
        }
        throw .lost("the program has died")
    }

    func begin(_ purpose: Purpose) throws(SessionFailure) {
        try live()
        try inner.begin(purpose)
    }

    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] {
        try live()
        return try inner.run(steps)
    }

    func execute(_ sql: String) throws(SessionFailure) {
        try live()
        try inner.execute(sql)
        left -= 1
    }

    func commit() throws(SessionFailure) {
        try live()
        try inner.commit()
    }

    func rollBack() { if !isDead { inner.rollBack() } }
    func close() { inner.close() }
    var changes: Int64 { inner.changes }
    var place: SessionHost? { inner.place }
}
