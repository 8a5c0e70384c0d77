import Relay

/// The names of the columns of a result. A connection makes them once, when it prepares the
/// statement, and all rows share them.
final class ResultColumns: Sendable {
    private let names: SQLNames
    /// The first index of each name that several columns have. They cannot be read by name.
    private let ambiguous: [Int]
    /// The statement, for messages.
    private let sql: String

    /// The columns of a statement without a result.
    static let none = ResultColumns([], of: "")

    init(_ names: [String], of sql: String) {
        self.sql = sql
        var list = SQLNames()
        var ambiguous: [Int] = []
        for name in names {
            if let first = list.firstIndex(of: name.utf8) { ambiguous.append(first) }
            list.append(name.utf8)
        }
        self.names = list
        self.ambiguous = ambiguous
    }

    var count: Int { names.count }

    func name(at index: Int) -> String { names[index] }

    func index(of name: SQLName) throws(StoreFailure) -> Int {
        guard let index = names.firstIndex(of: name) else {
            throw .internal("there is no column \(name) in the result of: \(sql)")
        }
        guard !ambiguous.contains(index) else {
            throw .internal("there are several columns \(name) in the result of: \(sql)")
        }
        return index
    }
}

/// The result of one statement. The columns of its rows are read by name. The name of a column is
/// its name in the table or the one that the statement gives it with `AS`.
public struct Rows: Sendable, RandomAccessCollection {
    let columns: ResultColumns
    let values: [SQLValue]
    /// The number of rows that a statement without a result matched.
    let changes: Int64
    /// Opens personal values; nil before the store returns the rows.
    var personal: PersonalSealer?

    init(_ columns: ResultColumns, _ values: [SQLValue]) {
        self.columns = columns
        self.values = values
        changes = 0
    }

    init(changes: Int64) {
        columns = .none
        values = []
        self.changes = changes
    }

    /// The result of a query that found nothing.
    static let none = Rows(changes: 0)

    public var startIndex: Int { 0 }
    public var endIndex: Int { columns.count == 0 ? 0 : values.count / columns.count }

    public subscript(row: Int) -> Row {
        let start = row * columns.count
        return Row(columns: columns, values: values[start..<(start + columns.count)], personal: personal)
    }
}

/// A row of a result. Every accessor throws `StoreFailure.internal` if there is no such column or
/// the column has another type. In that case the SQL and its reader disagree, and a guess would
/// hide the error.
public struct Row: Sendable {
    private let columns: ResultColumns
    private let values: ArraySlice<SQLValue>
    /// Opens personal values.
    let personal: PersonalSealer?

    init(columns: ResultColumns, values: ArraySlice<SQLValue>, personal: PersonalSealer? = nil) {
        self.columns = columns
        self.values = values
        self.personal = personal
    }

    public var count: Int { values.count }

    /// All columns in order, for an operator. Personal values are opened if they can be.
    var members: [(name: String, value: SQLValue)] {
        values.enumerated().map { index, value in (columns.name(at: index), personal?.shown(value) ?? value) }
    }

    /// Returns the value of a column by its index, for results whose columns are computed.
    func value(at column: Int) throws(StoreFailure) -> SQLValue {
        guard values.indices.contains(values.startIndex + column), column >= 0 else {
            throw .internal("a row has no column \(column)")
        }
        return values[values.startIndex + column]
    }

    func integer(at column: Int) throws(StoreFailure) -> Int64 {
        let value = try value(at: column)
        guard case .integer(let number) = value else { throw mismatch("\(column)", "an integer", value) }
        return number
    }

    /// Returns the values of neighbouring columns.
    func values(at columns: Range<Int>) throws(StoreFailure) -> ArraySlice<SQLValue> {
        guard columns.lowerBound >= 0, columns.upperBound <= values.count else {
            throw .internal("a row has no columns \(columns)")
        }
        return values[(values.startIndex + columns.lowerBound)..<(values.startIndex + columns.upperBound)]
    }

    public func value(_ column: SQLName) throws(StoreFailure) -> SQLValue {
        values[values.startIndex + (try columns.index(of: column))]
    }

    public func isNull(_ column: SQLName) throws(StoreFailure) -> Bool { try value(column) == .null }

    public func integer(_ column: SQLName) throws(StoreFailure) -> Int64 {
        guard case .integer(let value) = try value(column) else { throw mismatch(column, "an integer") }
        return value
    }

    public func text(_ column: SQLName) throws(StoreFailure) -> String {
        guard case .text(let value) = try value(column) else { throw mismatch(column, "text") }
        return value
    }

    public func blob(_ column: SQLName) throws(StoreFailure) -> [UInt8] {
        guard case .blob(let value) = try value(column) else { throw mismatch(column, "bytes") }
        return value
    }

    /// Returns an integer that is 0 or 1 as a Boolean.
    public func bool(_ column: SQLName) throws(StoreFailure) -> Bool {
        switch try integer(column) {
        case 0: return false
        case 1: return true
        default: throw mismatch(column, "0 or 1")
        }
    }

    public func optionalInteger(_ column: SQLName) throws(StoreFailure) -> Int64? {
        try isNull(column) ? nil : integer(column)
    }

    public func optionalText(_ column: SQLName) throws(StoreFailure) -> String? {
        try isNull(column) ? nil : text(column)
    }

    public func optionalBlob(_ column: SQLName) throws(StoreFailure) -> [UInt8]? {
        try isNull(column) ? nil : blob(column)
    }

    /// Makes the error for a column of the wrong type. It names only the type, because values may
    /// be secrets and errors are logged.
    private func mismatch(_ column: SQLName, _ wanted: String) -> StoreFailure {
        mismatch(column.description, wanted, try? value(column))
    }

    func mismatch(_ column: String, _ wanted: String, _ value: SQLValue?) -> StoreFailure {
        let found =
            switch value {
            case .null, .personal, nil: "NULL"
            case .integer: "an integer"
            case .text: "text"
            case .blob: "bytes"
            }
        return .internal("column \(column) should hold \(wanted) and holds \(found)")
    }
}
