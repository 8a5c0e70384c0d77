/// A connection to a database, with its prepared statements. One thread at a time uses it. It runs
/// transactions and statements; `Lane` is responsible for scripts, batches and retries.
package protocol Session: AnyObject {
    /// Begins a transaction, on a new connection if the last one was lost. It waits shortly before
    /// it reconnects after a failure, so that repeated attempts do not use all processor time.
    func begin(_ purpose: Purpose) throws(SessionFailure)

    /// Runs the statements in order and returns one `Rows` for each. After a failure some of them
    /// may have had an effect, so the caller must call `rollBack()`.
    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows]

    /// Commits the transaction. `.conflict`, `.locked` and `.refused` mean that nothing was
    /// committed; `.lost` means that the result is unknown.
    func commit() throws(SessionFailure)

    /// Rolls the transaction back. It never fails: if the rollback is not possible, it closes the
    /// connection.
    func rollBack()

    /// Runs one statement outside transactions and without the cache of prepared statements, for
    /// changes of the schema.
    func execute(_ sql: String) throws(SessionFailure)

    func close()

    /// The number of rows that statements have matched so far, including those of rolled back
    /// transactions.
    var changes: Int64 { get }

    /// The host of the current or last connection; nil if the database is a file.
    var place: SessionHost? { get }
}

/// A host, as one connection of a session uses it.
package struct SessionHost: Sendable, Equatable {
    package let host: String
    /// The ordinal of this connection within the session.
    package let number: Int
}

/// The purpose of a transaction.
package enum Purpose: Sendable {
    case writing
    case reading
    /// Repeated reading for the change feed: the next read finds a change that this one misses.
    case watching
}

/// The kinds of failures of both engines, by the action that the lane takes.
package enum SessionFailure: Error, Sendable, Equatable {
    /// The statement is wrong, or a rule of the schema forbids it. It would fail again, even alone.
    case statement(String)
    /// Another transaction conflicted and nothing was committed. The lane may retry at once.
    case conflict(String)
    /// A lock was not available in time and nothing was committed. The lane retries each script
    /// alone, so that others do not wait again.
    case locked(String)
    /// The connection is lost. If a COMMIT was sent, its result is unknown.
    case lost(String)
    /// The database cannot do it now, because of a full disk, an I/O error, a missing file or
    /// missing permission.
    case refused(String)

    package var message: String {
        switch self {
        case .statement(let text), .conflict(let text), .locked(let text), .lost(let text), .refused(let text): text
        }
    }
}
