import CSQLite

/// A prepared statement on one connection.
final class SQLiteStatement {
    private let database: OpaquePointer
    private let handle: OpaquePointer
    private let text: StatementText.Dialected
    private let columns: ResultColumns

    init(_ statement: Statement, on database: OpaquePointer) throws(SessionFailure) {
        self.database = database
        text = statement.text.sqlite
        let sql = text.sql
        var prepared: OpaquePointer?
        var isWhole = true
        let status = sql.withCString { text in
            var tail: UnsafePointer<CChar>?
            defer { isWhole = tail.map { $0.pointee == 0 } ?? true }
            return sqlite3_prepare_v3(database, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, &tail)
        }
        guard status == SQLITE_OK else {
            let failure = SQLiteFailure.of(status, database)
            if case .statement(let message) = failure { throw .statement("\(message) in: \(sql)") }
            throw failure
        }
        guard let prepared else { throw .statement("nothing to run in: \(sql)") }
        guard isWhole else {
            sqlite3_finalize(prepared)
            throw .statement("more than one statement in: \(sql)")
        }
        guard sqlite3_bind_parameter_count(prepared) == text.slots.count else {
            sqlite3_finalize(prepared)
            throw .statement("other parameters than SQLite finds were found in: \(sql)")
        }
        handle = prepared
        let names = (0..<sqlite3_column_count(prepared)).map { String(cString: sqlite3_column_name(prepared, $0)) }
        columns = ResultColumns(names, of: sql)
    }

    deinit { sqlite3_finalize(handle) }

    func forgetSteps() { csqlite_forget_steps(handle) }

    func run(_ values: [SQLValue]) throws(SessionFailure) -> Rows {
        defer {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
        }
        try bind(values)
        var found: [SQLValue] = []
        // Most results have at most one row.
        found.reserveCapacity(columns.count)
        while true {
            let status = sqlite3_step(handle)
            switch status {
            case SQLITE_ROW:
                for column in 0..<Int32(columns.count) { found.append(try value(column)) }
            case SQLITE_DONE:
                return columns.count == 0 ? Rows(changes: sqlite3_changes64(database)) : Rows(columns, found)
            default:
                let failure = SQLiteFailure.of(status, database)
                if case .statement(let message) = failure { throw .statement("\(message) in: \(text.sql)") }
                throw failure
            }
        }
    }

    private func bind(_ values: [SQLValue]) throws(SessionFailure) {
        guard text.values == values.count else {
            throw .statement("\(text.values) values are wanted and \(values.count) are given in: \(text.sql)")
        }
        for (index, slot) in text.slots.enumerated() {
            let place = Int32(index + 1)
            let status: Int32
            switch values[slot] {
            case .null: status = sqlite3_bind_null(handle, place)
            case .personal: throw .statement("a personal value was not resolved for: \(text.sql)")
            case .integer(let number): status = sqlite3_bind_int64(handle, place, number)
            case .text(var text):
                status = text.withUTF8 { bytes in
                    bytes.withMemoryRebound(to: CChar.self) { characters in
                        csqlite_bind_text(handle, place, characters.baseAddress, Int32(bytes.count))
                    }
                }
            case .blob(let blob):
                status = blob.withUnsafeBytes { csqlite_bind_blob(handle, place, $0.baseAddress, Int32($0.count)) }
            }
            guard status == SQLITE_OK else { throw SQLiteFailure.of(status, database) }
        }
    }

    private func value(_ column: Int32) throws(SessionFailure) -> SQLValue {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_NULL: return .null
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, column))
        case SQLITE_TEXT:
            let start = sqlite3_column_text(handle, column)
            let count = Int(sqlite3_column_bytes(handle, column))
            return .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            let start = sqlite3_column_blob(handle, column)
            let count = Int(sqlite3_column_bytes(handle, column))
            return .blob([UInt8](UnsafeRawBufferPointer(start: start, count: count)))
        default:
            // No column of the schema has floating point numbers. If somebody else stored one, it
            // must not stop scripts that only take rights away.
            return .text(String(cString: sqlite3_column_text(handle, column)))
        }
    }
}
