/// Rows of one table, found by a condition, that a script relies on or changes.
public struct SignedRows: Sendable, Hashable {
    /// The role of the rows in a script.
    enum Use: Sendable {
        /// The script's answer, or its changes to other rows, follow from these rows. A row that is
        /// not genuine stops the script.
        case relied
        /// The script writes these rows. A row that is not genuine stops it. Afterwards the rows that
        /// were genuine and the rows that it inserted are signed.
        case signed
        /// The script may write any of these rows, because it only takes rights away from those that
        /// are there. Afterwards the rows that were genuine and the rows that it inserted are
        /// signed; others stay as they are.
        case lenient
        /// An operator vouches for these rows as they are.
        case adopted

        /// A row that is not genuine stops the script.
        var needsGenuineRows: Bool { self == .relied || self == .signed }
    }

    let search: RowSearch
    let values: [SQLValue]
    let use: Use

    private init(_ search: RowSearch, _ values: [SQLValue], _ use: Use) {
        self.search = search
        self.values = values
        self.use = use
    }

    init(_ search: RowSearch, values: [SQLValue]) { self.init(search, values, .relied) }

    init(_ search: RowSearch, _ values: SQLValue...) { self.init(search, values: values) }

    var signed: SignedRows { SignedRows(search, values, .signed) }
    var lenient: SignedRows { SignedRows(search, values, .lenient) }
    var adopted: SignedRows { SignedRows(search, values, .adopted) }

    /// In a transaction that writes, nobody may change the rows between the check and what relies on it.
    func reading(for purpose: Purpose) -> BoundStatement {
        guard purpose == .writing else { return BoundStatement(search.plain, values: values) }
        return BoundStatement(use == .relied ? search.shared : search.locked, values: values)
    }
}

/// A condition on the rows of a table. Like a statement it is made once, as a `static let`.
final class RowSearch: Sendable {
    let table: SignedTable
    let plain: Statement
    let shared: Statement
    let locked: Statement

    init(_ table: SignedTable, where condition: String) {
        self.table = table
        let sql = "SELECT \(table.columns) FROM \(table.name) WHERE \(condition)"
        plain = Statement(sql)
        shared = Statement(sql + " /*M! LOCK IN SHARE MODE */")
        locked = Statement(sql + " /*M! FOR UPDATE */")
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

/// A row as a check has read it.
struct CheckedRow {
    let table: SignedTable
    let values: [SQLValue]
    let rights: Int64
    let mac: [UInt8]?

    init(_ row: Row, of table: SignedTable) throws(SessionFailure) {
        let count = table.covered.count
        do {
            self.table = table
            values = try (0..<count).map { try row.value($0) }
            rights = try row.integer(count)
            // SQLite stores a value of any type: one that is no MAC must not stop scripts that only
            // take away. An INSERT that met this row has marked it (`WrittenRows`): MariaDB pads that
            // empty MAC with zeros.
            if case .blob(let bytes) = try row.value(count + 1), bytes.contains(where: { $0 != 0 }) {
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

    /// As an operator names it to `twoefay rows`.
    var name: String { table.name + " " + Self.text(of: key) }
}
