import Bytes
import Relay

/// A value that is bound to a statement or read from a row. Timestamps are text; Booleans are
/// integers.
public enum SQLValue: Sendable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
    /// A value that the store seals, or compares in every form, before a session gets it.
    case personal(PersonalValue)
}

/// Texts are compared by their bytes, as both databases do. For Swift, different encodings of a
/// character are equal, and two users may have such names.
extension SQLValue: Hashable {
    public static func == (a: SQLValue, b: SQLValue) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.integer(let a), .integer(let b)): a == b
        case (.text(let a), .text(let b)): a.hasSameBytes(as: b)
        case (.blob(let a), .blob(let b)): a == b
        case (.personal(let a), .personal(let b)): a == b
        case (.null, _), (.integer, _), (.text, _), (.blob, _), (.personal, _): false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let number): hasher.combine(number)
        case .text(let text): hasher.combine(text.utf8)
        // Not byte by byte, as an array is hashed.
        case .blob(let bytes): bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        case .personal(let value): hasher.combine(value)
        }
    }
}

extension Hasher {
    /// Adds a text by its bytes.
    mutating func combine(_ text: String.UTF8View) {
        combine(text.count)
        let isWhole: Void? = text.withContiguousStorageIfAvailable { combine(bytes: UnsafeRawBufferPointer($0)) }
        if isWhole == nil { for byte in text { combine(byte) } }
    }
}

/// A guarded script: the fixed list of statements by which one request uses the store.
///
/// Purpose: all writes run first, then all reads, in one transaction and without a decision by the
/// relay in between. So a lane can batch scripts, and MariaDB can receive them without a round trip
/// for each statement.
///
/// Invariant: a write decides by its own WHERE clause whether it changes anything. Later writes
/// depend on the operation that the first one wrote, so a script changes everything or nothing.
///
/// Failures: the answer to a COMMIT may be lost. A script with an `operation` is then looked up in
/// the audit and not run twice. A script without one must be safe to run twice.
///
/// `ContractTests.swift` tests it on both engines. `UnknownCommitTests.swift` tests its repetition
/// on MariaDB.
public struct Script: Sendable {
    /// The name in logs and errors.
    public let name: StaticString
    /// The 16 bytes that the script writes to `audit.operation` if it has an effect. A retry uses
    /// them to find out whether an earlier attempt was committed. A script with writes and without
    /// an operation must be safe to run twice.
    public let operation: [UInt8]?
    /// Whether an earlier process may have run the script with this operation and crashed before it
    /// had the answer. If it was committed, only the reads run.
    public let mayHaveRun: Bool
    /// The signed rows that the script relies on or writes.
    public let rows: [SignedRows]
    public let writes: [BoundStatement]
    public let reads: [BoundStatement]
    /// The index of a write whose number of matched rows follows the results of the reads; nil if
    /// nobody needs it. If the script was committed before, and does not run again, the number is 1
    /// after a lost answer, because that commit was most probably its own, and else 0.
    let reported: Int?
    /// The short form, if the script has one. The script then has no statements of its own.
    let short: ShortForm?

    var isReadOnly: Bool { short == nil && writes.isEmpty && rows.allSatisfy { $0.use == .relied } }

    public init(
        _ name: StaticString, operation: [UInt8]? = nil, mayHaveRun: Bool = false, rows: [SignedRows] = [],
        writes: [BoundStatement] = [], reads: [BoundStatement] = [], reporting reported: Int? = nil
    ) {
        short = nil
        self.rows = rows
        self.name = name
        self.operation = operation
        self.mayHaveRun = mayHaveRun
        self.writes = writes
        self.reads = reads
        self.reported = reported
    }

    /// Whether it relies on signed rows or writes some.
    var namesSignedRows: Bool { !rows.isEmpty || reads.contains { !$0.statement.checks.isEmpty } }

    init(_ name: StaticString, operation: [UInt8]?, mayHaveRun: Bool, short: ShortForm) {
        self.name = name
        self.operation = operation
        self.mayHaveRun = mayHaveRun
        self.short = short
        (rows, writes, reads, reported) = ([], [], [], nil)
    }

    /// The script in its guarded form.
    var guarded: Script {
        get throws(StoreFailure) { try short?.guarded() ?? self }
    }

    /// Returns the script without the statements and rows that need newer tables, and the indices of
    /// the reads that are left out.
    func fitting(_ version: Int64) -> (script: Script, missing: [Int]) {
        func fits(_ bound: BoundStatement) -> Bool { bound.statement.since <= version }
        func exist(_ rows: SignedRows) -> Bool { rows.search.table.since <= version }
        if writes.allSatisfy(fits), reads.allSatisfy(fits), rows.allSatisfy(exist) { return (self, []) }
        let script = Script(
            name, operation: operation, mayHaveRun: mayHaveRun, rows: rows.filter(exist), writes: writes.filter(fits),
            reads: reads.filter(fits), reporting: reported.map { writes[..<$0].count(where: fits) })
        return (script, reads.indices.filter { !fits(reads[$0]) })
    }
}
