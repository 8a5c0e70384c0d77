/// The rows of one table that a script relies on or changes, found by a condition.
///
/// Purpose: a script declares these rows, and `RowCheck` checks them before the script and signs
/// them after it. No verb calls the check itself, so no verb can forget it.
///
/// Invariant: each `Use` says whether a row that is not genuine stops the script, and whether rows
/// are signed afterwards.
///
/// Failures: a script acts on a row that it does not declare; this row is not checked. Declare each
/// signed row that the answer or a change depends on.
///
/// `ForgedRowTests.swift` and `RowRaceTests.swift` test it for the scripts of the verbs.
public struct SignedRows: Sendable, Hashable {
    /// The role of the rows in a script.
    enum Use: Sendable {
        /// The script's answer, or its changes to other rows, depend on these rows. A row that is
        /// not genuine stops the script.
        case relied
        /// The script writes these rows. A row that is not genuine stops it. Afterwards the rows
        /// that were genuine and the rows that it inserted are signed.
        case signed
        /// The script may write any of these rows, because it only takes rights away from existing
        /// ones. Afterwards the rows that were genuine and the rows that it inserted are signed;
        /// the others stay as they are.
        case lenient
        /// An operator vouches for these rows as they are. They are signed without a check.
        case adopted

        /// Whether a row that is not genuine stops the script.
        var needsGenuineRows: Bool { self == .relied || self == .signed }
    }

    let search: RowSearch
    let values: [SQLValue]
    let use: Use

    fileprivate init(_ search: RowSearch, _ values: [SQLValue], _ use: Use) {
        self.search = search
        self.values = values
        self.use = use
    }

    var signed: SignedRows { SignedRows(search, values, .signed) }
    var lenient: SignedRows { SignedRows(search, values, .lenient) }
    var adopted: SignedRows { SignedRows(search, values, .adopted) }

    /// Returns the statement that reads the rows. In a transaction that writes, the statement locks
    /// them, so that nobody changes them between the check and the script.
    func reading(for purpose: Purpose) -> BoundStatement {
        guard purpose == .writing else { return BoundStatement(search.plain, values: values) }
        return BoundStatement(use == .relied ? search.shared : search.locked, values: values)
    }
}

/// A search for rows of a table by a condition with named parameters. It is created once, as a
/// `static let`, and compared by identity.
///
/// A call of the search binds its values, as a call of a `Statement` does:
/// `websiteByID(website: .id(website))`. The rows that it names are relied on, until `signed` or
/// another use is added.
@dynamicCallable
final class RowSearch: Sendable {
    let table: SignedTable
    /// The three statements have the same parameters in the same order.
    let plain: Statement
    let shared: Statement
    let locked: Statement

    /// - Parameter condition: the condition. In braces, it compares the primary key.
    init(_ table: SignedTable, where condition: String) {
        self.table = table
        // A scan of a small table would wait for the locks of other rows.
        let index = condition.hasPrefix("{") ? "/*M! FORCE INDEX (PRIMARY) */" : ""
        let sql = "SELECT \(table.columns) FROM \(table.name) \(index) WHERE \(condition)"
        plain = Statement(sql)
        shared = Statement("\(sql) /*M! LOCK IN SHARE MODE */")
        locked = Statement("\(sql) /*M! FOR UPDATE */")
    }

    func dynamicallyCall(withKeywordArguments values: KeyValuePairs<SQLName, SQLValue>) -> SignedRows {
        SignedRows(self, plain.dynamicallyCall(withKeywordArguments: values).values, .relied)
    }

    /// Binds values and lists, as `Statement.bound` does.
    func bound(
        _ values: KeyValuePairs<SQLName, SQLValue> = [:], lists: KeyValuePairs<SQLName, [SQLValue]>
    ) -> SignedRows {
        SignedRows(self, plain.bound(values, lists: lists).values, .relied)
    }
}

extension RowSearch: Hashable {
    static func == (a: RowSearch, b: RowSearch) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A row's table and primary key.
struct RowID: Hashable {
    let table: String
    let key: [SQLValue]

    init(_ table: SignedTable, _ key: [SQLValue]) {
        self.table = table.name
        self.key = key
    }
}

/// A row of a signed table as a check has read it.
struct CheckedRow {
    let table: SignedTable
    let values: [SQLValue]
    let rights: Int64
    let mac: [UInt8]?

    /// Reads the columns of `SignedTable.columns`.
    ///
    /// - Parameter start: the place of the first of them.
    init(_ row: Row, from start: Int = 0, of table: SignedTable) throws(SessionFailure) {
        do {
            self.table = table
            // Some covered columns are expressions without a name.
            let end = start + table.covered.count
            values = Array(try row.values(at: start..<end))
            rights = try row.integer(at: end)
            // SQLite stores a value of any type. A value that is not a MAC must not stop scripts
            // that only take rights away. An INSERT that finds a row without a MAC sets an empty
            // one (`WrittenRows`), and MariaDB pads it with zeros.
            if case .blob(let bytes) = try row.value(at: end + 1), bytes.contains(where: { $0 != 0 }) {
                mac = bytes
            } else {
                mac = nil
            }
        } catch {
            throw .statement("a row of \(table.name) cannot be checked: \(error)")
        }
    }

    var key: [SQLValue] { Array(values.prefix(table.key.count)) }

    func isGenuine(_ authenticator: RowAuthenticator) -> Bool {
        guard let mac else { return false }
        return authenticator.isGenuine(mac, of: values, in: table, rights: rights)
    }

    var id: RowID { RowID(table, key) }

    /// The name that an operator gives to `twoefay rows`.
    var name: String { table.name + " " + Self.text(of: key) }
}
