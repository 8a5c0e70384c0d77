import Relay
import World

/// Conversions of values. Timestamps are DATETIME(3) in UTC, and are sent and received as text.
extension SQLValue {
    public static func timestamp(_ value: Timestamp) -> SQLValue { .text(value.sql) }
    public static func timestamp(_ value: Timestamp?) -> SQLValue { value.map { .text($0.sql) } ?? .null }

    public static func text(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
    public static func blob(_ value: [UInt8]?) -> SQLValue { value.map { .blob($0) } ?? .null }
    public static func integer(_ value: Int64?) -> SQLValue { value.map { .integer($0) } ?? .null }
    public static func bool(_ value: Bool) -> SQLValue { .integer(value ? 1 : 0) }
}

extension Row {
    public func timestamp(_ column: SQLName) throws(StoreFailure) -> Timestamp {
        guard let value = Timestamp(sql: try text(column)) else {
            throw .internal("column \(column) should hold a timestamp and holds another text")
        }
        return value
    }

    public func optionalTimestamp(_ column: SQLName) throws(StoreFailure) -> Timestamp? {
        try isNull(column) ? nil : timestamp(column)
    }
}
