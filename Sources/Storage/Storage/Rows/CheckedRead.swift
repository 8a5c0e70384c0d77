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
            SignedTable.isName(column)
                ? "\(alias).\(column) AS \(prefix)\(column)"
                : "\(SignedTable.qualified(column, by: alias)) AS \(alias)_check_\(index)"
        }
        let rights = "\(SignedTable.qualified(table.rightsAsBits, by: alias)) AS \(alias)_rights"
        return (covered + [rights, "\(alias).mac AS \(alias)_mac"]).joined(separator: ", ")
    }
}

extension SignedTable {
    /// The table for the FROM of a checked read.
    func checked(as alias: String) -> String { "\(name) \(alias)" }

    fileprivate static func isName(_ column: String) -> Bool { column.utf8.allSatisfy(isInName) }

    /// Returns an expression with an alias before each column. In the expressions of signed tables,
    /// words in small letters are columns, functions, or between quotes.
    static func qualified(_ expression: String, by alias: String) -> String {
        let bytes = Array(expression.utf8)
        var result: [UInt8] = []
        var isQuoted = false
        var index = 0
        while index < bytes.count {
            let end = bytes[index...].firstIndex { !isInName($0) } ?? bytes.count
            guard end > index else {
                if bytes[index] == UInt8(ascii: "'") { isQuoted.toggle() }
                result.append(bytes[index])
                index += 1
                continue
            }
            let isFunction = end < bytes.count && bytes[end] == UInt8(ascii: "(")
            if !isQuoted && !isFunction { result += Array(alias.utf8) + [UInt8(ascii: ".")] }
            result += bytes[index..<end]
            index = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func isInName(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "_")
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
