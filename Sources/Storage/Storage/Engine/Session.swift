/// One connection to a database, with what is prepared on it. One thread at a time uses it. It knows transactions and
/// statements; scripts, batches and retries are the lane's.
package protocol Session: AnyObject {
    /// Begins a transaction, on a new connection if the last one was lost. Waits a little before it throws `.lost`, so
    /// that trying again and again does not spin.
    func begin(_ purpose: Purpose) throws(SessionFailure)

    /// Runs the steps in order and gives back one `Rows` for each. After a failure some of them may have had an effect:
    /// what follows is `rollBack()`.
    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows]

    /// `.conflict` and `.refused` mean that nothing was committed, `.lost` that nobody knows.
    func commit() throws(SessionFailure)

    /// Never fails: if the transaction cannot be ended, the connection is.
    func rollBack()

    /// Runs one statement outside any transaction and outside the cache of prepared ones: for the schema.
    func execute(_ sql: String) throws(SessionFailure)

    func close()

    /// Rows that statements have found to change so far, those of transactions that were rolled back too.
    var changes: Int64 { get }

    /// Where it is connected, or was last; nil where there is nothing to connect to.
    var place: SessionHost? { get }
}

/// A connection to a host.
package struct SessionHost: Sendable, Equatable {
    package let host: String
    /// Of the session's connections, the how manieth.
    package let number: Int
}

/// What a transaction is for.
package enum Purpose: Sendable {
    case writing
    case reading
    /// Reading, again and again: what is missed this time is found the next.
    case watching
}

/// What an engine's many errors come down to: what the lane does next.
package enum SessionFailure: Error, Sendable, Equatable {
    /// This statement is wrong, or a rule of the schema forbids it. Alone it would fail again.
    case statement(String)
    /// Somebody else was in the way and nothing has happened. Again, at once.
    case conflict(String)
    /// The same, after waiting: others need not wait with it again.
    case locked(String)
    /// The connection is gone, and whether a COMMIT on its way was done is not known.
    case lost(String)
    /// The database cannot do it now: disk full, I/O error, no such file, no permission.
    case refused(String)

    package var message: String {
        switch self {
        case .statement(let text), .conflict(let text), .locked(let text), .lost(let text), .refused(let text): text
        }
    }
}
