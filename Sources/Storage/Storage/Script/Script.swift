import Synchronization

/// A value on its way into a statement or out of a row. There is nothing else: moments are text, truth is an integer.
public enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
}

/// One fixed text of SQL with `?` for every value, prepared once on each connection that meets it. It is made once, as a
/// `static let`, and known by its identity.
///
/// Words inside `/*M! … */` are for MariaDB only, words inside `/*S! … */` for SQLite only.
public final class Statement: Sendable {
    public let sql: String
    /// Where a connection keeps what it prepared: a number that no other statement of this process has.
    let index: Int
    /// Tells which rows of a signed table it has written, if a check could not have found them before.
    let written: WrittenRows?

    private static let made = Atomic<Int>(0)

    public convenience init(_ sql: String) { self.init(sql, written: nil) }

    init(_ sql: String, written: WrittenRows?) {
        self.sql = sql
        self.written = written
        index = Self.made.wrappingAdd(1, ordering: .relaxed).oldValue
    }
}

/// A statement with its values.
public struct BoundStatement: Sendable {
    public let statement: Statement
    public let values: [SQLValue]

    public init(_ statement: Statement, _ values: SQLValue...) {
        self.statement = statement
        self.values = values
    }

    public init(_ statement: Statement, values: [SQLValue]) {
        self.statement = statement
        self.values = values
    }
}

/// Everything that one request does to the store: all writes, then all reads, in one transaction with no question asked
/// in between. What a write may do, it decides itself by its own WHERE.
public struct Script: Sendable {
    /// What logs and errors call it.
    public let name: StaticString
    /// The 16 bytes under which the script leaves a row in `audit` if it had an effect. With them a retry can find out
    /// whether the first try was committed. A script with writes and without an operation must bear being run twice.
    public let operation: [UInt8]?
    /// Somebody may have run it before, under this operation, without living to say so: if it was committed, only its
    /// reads are run.
    public let mayHaveRun: Bool
    /// Rows that must have been written by a relay, or are written here.
    public let rows: [SignedRows]
    public let writes: [BoundStatement]
    public let reads: [BoundStatement]

    var isReadOnly: Bool { writes.isEmpty && rows.allSatisfy { $0.use == .relied } }

    public init(
        _ name: StaticString, operation: [UInt8]? = nil, mayHaveRun: Bool = false, rows: [SignedRows] = [],
        writes: [BoundStatement] = [], reads: [BoundStatement] = []
    ) {
        self.rows = rows
        self.name = name
        self.operation = operation
        self.mayHaveRun = mayHaveRun
        self.writes = writes
        self.reads = reads
    }
}
