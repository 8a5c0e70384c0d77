import Relay

/// The result of one statement. Columns are identified by their index.
public struct Rows: Sendable, RandomAccessCollection {
    let columns: Int
    let values: [SQLValue]
    /// The number of rows that a statement without a result matched.
    let changes: Int64

    init(columns: Int, values: [SQLValue], changes: Int64 = 0) {
        self.columns = columns
        self.values = values
        self.changes = changes
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { columns == 0 ? 0 : values.count / columns }

    public subscript(row: Int) -> Row {
        let start = row * columns
        return Row(values: values[start..<(start + columns)])
    }
}

/// A row of a result. Every accessor throws `StoreFailure.internal` if the column has another type.
/// In that case the SQL and its reader disagree, and a guess would hide the error.
public struct Row: Sendable {
    private let values: ArraySlice<SQLValue>

    init(values: ArraySlice<SQLValue>) { self.values = values }

    public var count: Int { values.count }

    public func value(_ column: Int) throws(StoreFailure) -> SQLValue {
        guard values.indices.contains(values.startIndex + column), column >= 0 else {
            throw .internal("a row has no column \(column)")
        }
        return values[values.startIndex + column]
    }

    public func isNull(_ column: Int) throws(StoreFailure) -> Bool { try value(column) == .null }

    public func integer(_ column: Int) throws(StoreFailure) -> Int64 {
        guard case .integer(let value) = try value(column) else { throw mismatch(column, "an integer") }
        return value
    }

    public func text(_ column: Int) throws(StoreFailure) -> String {
        guard case .text(let value) = try value(column) else { throw mismatch(column, "text") }
        return value
    }

    public func blob(_ column: Int) throws(StoreFailure) -> [UInt8] {
        guard case .blob(let value) = try value(column) else { throw mismatch(column, "bytes") }
        return value
    }

    /// Returns an integer that is 0 or 1 as a Boolean.
    public func bool(_ column: Int) throws(StoreFailure) -> Bool {
        switch try integer(column) {
        case 0: return false
        case 1: return true
        default: throw mismatch(column, "0 or 1")
        }
    }

    public func optionalInteger(_ column: Int) throws(StoreFailure) -> Int64? {
        try isNull(column) ? nil : integer(column)
    }

    public func optionalText(_ column: Int) throws(StoreFailure) -> String? {
        try isNull(column) ? nil : text(column)
    }

    public func optionalBlob(_ column: Int) throws(StoreFailure) -> [UInt8]? {
        try isNull(column) ? nil : blob(column)
    }

    /// Makes the error for a column of the wrong type. It names only the type, because values may
    /// be secrets and errors are logged.
    private func mismatch(_ column: Int, _ wanted: String) -> StoreFailure {
        let found =
            switch values[values.startIndex + column] {
            case .null: "NULL"
            case .integer: "an integer"
            case .text: "text"
            case .blob: "bytes"
            }
        return .internal("column \(column) should hold \(wanted) and holds \(found)")
    }
}
