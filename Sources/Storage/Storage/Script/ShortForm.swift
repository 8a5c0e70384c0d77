import Domain
import Relay

/// The short form of a guarded script: it reads, decides, and writes complete rows.
///
/// Purpose: each write of a guarded script decides by its own WHERE clause, and its rows are read
/// again to be signed. This is right in every case, and slow in the usual one: the user is active,
/// has no open login, and the phone answers the request that it was sent. A short form recognizes
/// the usual case by what it reads under locks, and writes each row once, with its MAC. In any other
/// case it declines, and the guarded script runs instead, in the next transaction.
///
/// Invariants:
/// - In the cases that it accepts, it leaves the same rows as the guarded script.
/// - Everything that it relies on is locked until the commit, by the lock on its user's row. One
///   transaction runs at most one short form for each user, and for each idempotency key.
/// - Each of its writes that must match a row repeats in its WHERE clause what was read.
///
/// Failures: a write matches nothing, or a row has been written already. The transaction then rolls
/// back, and its scripts run again, each alone and guarded. So does a script whose COMMIT had an
/// unknown result.
///
/// `ShortFormTests.swift` compares both forms. `ContractTests.swift` runs all scripts in both.
public struct ShortForm: Sendable {
    /// The id of the user whom the script is about, and the idempotency key that it claims.
    let subjects: [[UInt8]]
    /// The signed rows that it relies on or writes.
    let rows: [SignedRows]
    let reads: [BoundStatement]
    /// Decides what to write; nil if the guarded script must run.
    let decide: @Sendable (ShortReading) throws(StoreFailure) -> ShortWrites?
    /// Makes the guarded script.
    let guarded: @Sendable () throws(StoreFailure) -> Script
}

/// The writes of a short form.
struct ShortWrites: Sendable {
    /// The statements in their order.
    var writes: [ShortWrite]
    /// The results that the reads of the guarded script would have.
    let answer: [Rows]
}

/// A write of a short form. An audit row must be new.
struct ShortWrite: Sendable {
    let statement: BoundStatement
    /// Whether it must match one row. If it does not, the row has changed since it was read.
    let mustMatch: Bool

    init(_ statement: BoundStatement, mustMatch: Bool = false) {
        self.statement = statement
        self.mustMatch = mustMatch
    }
}

/// The rows that a short form has read, and the keys with which it signs.
struct ShortReading: Sendable {
    /// The rows of each of the form's `rows`. All are genuine.
    let rows: [[CheckedRow]]
    /// The results of the form's `reads`.
    let reads: [Rows]
    let authenticator: RowAuthenticator
    let personal: PersonalSealer?

    /// Returns a personal value in the form that the store writes.
    func written(_ value: SQLValue) throws(StoreFailure) -> SQLValue {
        guard case .personal(let value) = value else { return value }
        return try personal?.written(value.content) ?? value.content.plain
    }

    func mac(of values: [SQLValue], in table: SignedTable, rights: Int64) -> SQLValue {
        .blob(authenticator.mac(of: values, in: table, rights: rights))
    }

    /// Whether the row has the MAC that a new signature would give it. A guarded script signs its
    /// rows again if the key or the rights have changed.
    func isCurrent(_ row: CheckedRow) -> Bool {
        mac(of: row.values, in: row.table, rights: row.rights) == .blob(row.mac)
    }

    /// Returns the statement that inserts a row with its MAC.
    func signed(_ row: NewRow) throws(StoreFailure) -> BoundStatement {
        var values: [SQLValue] = []
        values.reserveCapacity(row.values.count + 1)
        for value in row.values { values.append(try written(value)) }
        values.append(mac(of: row.insertion.covered(values), in: row.insertion.table, rights: row.insertion.rights))
        return BoundStatement(row.insertion.statement, values: values)
    }
}

/// An INSERT of one complete row into a signed table. It is created once, as a constant, and called
/// with the values of its columns.
@dynamicCallable
final class SignedInsertion: Sendable {
    let table: SignedTable
    let statement: Statement
    /// The rights of the row that is inserted.
    let rights: Int64
    /// For each covered column its place among the values; nil for a column that is left out, or an
    /// expression that is NULL in a new row.
    private let places: [Int?]

    init(into table: SignedTable, _ columns: [String], rights: Int64 = 0) {
        self.table = table
        self.rights = rights
        let all = columns + ["mac"]
        statement = Statement(
            """
            INSERT INTO \(table.name) (\(all.joined(separator: ", ")))
            VALUES (\(all.map { ":\($0)" }.joined(separator: ", ")))
            """)
        places = table.covered.map { columns.firstIndex(of: $0) }
    }

    func dynamicallyCall(withKeywordArguments values: KeyValuePairs<SQLName, SQLValue>) -> NewRow {
        // Our own bug: the labels are literals in the source, in the order of the columns.
        guard values.count + 1 == statement.text.names.count, statement.text.names.begin(with: values) else {
            fatalError("other values than the columns are given in: \(statement.sql)")
        }
        return NewRow(insertion: self, values: values.map(\.value))
    }

    func covered(_ values: [SQLValue]) -> [SQLValue] { places.map { $0.map { values[$0] } ?? .null } }
}

/// A row that is to be inserted and signed.
struct NewRow: Sendable {
    let insertion: SignedInsertion
    let values: [SQLValue]
}

extension Script {
    /// Creates a script with a short form. Its own statements are those of the guarded script, which
    /// is made when it is needed.
    init(_ name: StaticString, _ operation: Operation, short: ShortForm) {
        self.init(name, operation: operation.id.bytes, mayHaveRun: operation.mayHaveRun, short: short)
    }
}
