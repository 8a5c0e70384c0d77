import Domain
import Relay

/// Reads whose own result is checked.
///
/// Purpose: a script that only reads need not read its signed rows twice, once for the check and
/// once for the answer. A checked read joins the rows and returns what a check needs of each,
/// beside the columns of its answer: one statement in place of three or four.
///
/// Invariant: the check covers the rows that the answer comes from, because both are one row of one
/// result. A script with writes declares its rows instead (`SignedRows`): a check must precede what
/// it permits, and must lock the rows.
///
/// Failures: a row that is not genuine makes the script fail, as a declared row does.
/// `CheckedReadTests.swift` and `ForgedRowTests.swift` test it.
struct CheckedTable: Sendable {
    let table: SignedTable
    /// The name of the table in the statement.
    let alias: String
    /// The beginning of the names of the covered columns in the result.
    let prefix: String

    init(_ table: SignedTable, as alias: String, prefix: String = "") {
        self.table = table
        self.alias = alias
        self.prefix = prefix
    }

    /// The number of columns that a check needs: the covered ones, the rights and the MAC.
    var count: Int { table.covered.count + 2 }

    /// The columns that a check needs, in the order of `SignedTable.columns`.
    fileprivate var columns: String {
        let covered = table.covered.enumerated().map { index, column in
            Self.isName(column)
                ? "\(alias).\(column) AS \(prefix)\(column)" : "\(alias).check_\(index) AS \(alias)_check_\(index)"
        }
        return (covered + ["\(alias).check_rights AS \(alias)_rights", "\(alias).mac AS \(alias)_mac"])
            .joined(separator: ", ")
    }

    fileprivate static func isName(_ column: String) -> Bool {
        column.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0 == UInt8(ascii: "_") }
    }
}

extension SignedTable {
    /// The rows of the table for the FROM of a checked read. Both databases merge this into the
    /// statement.
    func checked(as alias: String) -> String {
        let expressions = covered.enumerated().filter { !CheckedTable.isName($1) }.map { "\($1) AS check_\($0)" }
        let columns = ["\(name).*"] + expressions + ["\(rightsAsBits) AS check_rights"]
        return "(SELECT \(columns.joined(separator: ", ")) FROM \(name)) \(alias)"
    }
}

extension Statement {
    /// Creates a checked read.
    ///
    /// - Parameters:
    ///   - tables: the tables whose rows are checked, as `SignedTable.checked` names them in `from`.
    ///   - columns: further columns.
    ///   - from: the text after FROM.
    convenience init(checking tables: [CheckedTable], _ columns: [String] = [], from: String) {
        let all = tables.map(\.columns) + columns
        self.init("SELECT \(all.joined(separator: ", ")) FROM \(from)", written: nil, checks: tables)
    }
}

extension BoundStatement {
    /// Returns the name of the first row of the result that is not genuine.
    func forgedRow(in rows: Rows, _ authenticator: RowAuthenticator) throws(SessionFailure) -> String? {
        guard !statement.checks.isEmpty else { return nil }
        for row in rows {
            var start = 0
            for checked in statement.checks {
                let found = try CheckedRow(row, from: start, of: checked.table)
                guard found.isGenuine(authenticator) else { return found.name }
                start += checked.count
            }
        }
        return nil
    }
}
