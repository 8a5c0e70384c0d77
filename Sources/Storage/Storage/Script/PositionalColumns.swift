import Domain
import Relay
import World

/// Columns read by their index, until every statement is read by names.
extension Row {
    public func value(_ column: Int) throws(StoreFailure) -> SQLValue { try value(at: column) }

    public func isNull(_ column: Int) throws(StoreFailure) -> Bool { try value(column) == .null }

    public func integer(_ column: Int) throws(StoreFailure) -> Int64 {
        guard case .integer(let value) = try value(column) else { throw mismatch(at: column, "an integer") }
        return value
    }

    public func text(_ column: Int) throws(StoreFailure) -> String {
        guard case .text(let value) = try value(column) else { throw mismatch(at: column, "text") }
        return value
    }

    public func blob(_ column: Int) throws(StoreFailure) -> [UInt8] {
        guard case .blob(let value) = try value(column) else { throw mismatch(at: column, "bytes") }
        return value
    }

    public func bool(_ column: Int) throws(StoreFailure) -> Bool {
        switch try integer(column) {
        case 0: return false
        case 1: return true
        default: throw mismatch(at: column, "0 or 1")
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

    public func timestamp(_ column: Int) throws(StoreFailure) -> Timestamp {
        guard let value = Timestamp(sql: try text(column)) else {
            throw .internal("column \(column) should hold a timestamp and holds another text")
        }
        return value
    }

    public func optionalTimestamp(_ column: Int) throws(StoreFailure) -> Timestamp? {
        try isNull(column) ? nil : timestamp(column)
    }

    func id<Thing>(_ column: Int) throws(StoreFailure) -> Identifier<Thing> {
        guard let id = Identifier<Thing>(try blob(column)) else { throw .internal("column \(column) holds no id") }
        return id
    }

    func optionalID<Thing>(_ column: Int) throws(StoreFailure) -> Identifier<Thing>? {
        try isNull(column) ? nil : id(column)
    }

    func word<Word: RawRepresentable<String>>(_ column: Int) throws(StoreFailure) -> Word {
        let text = try text(column)
        guard let word = Word(rawValue: text) else {
            throw .internal("column \(column) holds the unknown word \(text)")
        }
        return word
    }

    func optionalWord<Word: RawRepresentable<String>>(_ column: Int) throws(StoreFailure) -> Word? {
        try isNull(column) ? nil : word(column)
    }

    private func mismatch(at column: Int, _ wanted: String) -> StoreFailure {
        mismatch(String(column), wanted, try? value(at: column))
    }
}
