import CMariaDB

/// The buffers for the columns of a statement's rows, and their conversion to values.
final class MariaDBColumns {
    private enum Kind {
        case integer
        /// A DECIMAL without decimal places: the result of SUM over integers.
        case wholeDecimal
        case text
        case bytes
        /// Floating point numbers, bits or geometry, which the schema does not use.
        case unreadable
    }

    /// The size of a column's buffer, in bytes. Longer values are fetched separately.
    private static let room = 256

    let names: ResultColumns
    private let count: Int
    private var kinds: [Kind] = []
    private let binds: UnsafeMutablePointer<MYSQL_BIND>
    private let buffers: UnsafeMutableRawPointer
    private let lengths: UnsafeMutablePointer<UInt>
    private let nulls: UnsafeMutablePointer<my_bool>
    private let cuts: UnsafeMutablePointer<my_bool>

    init(count: Int, of statement: UnsafeMutablePointer<MYSQL_STMT>, _ sql: String) {
        self.count = count
        let fields = mariadb_stmt_fetch_fields(statement)
        let found = (0..<count).map { column in
            fields.flatMap { $0[column].name }.map { String(cString: $0) } ?? ""
        }
        names = ResultColumns(found, of: sql)
        binds = .allocate(capacity: count)
        binds.initialize(repeating: MYSQL_BIND(), count: count)
        buffers = .allocate(byteCount: count * Self.room, alignment: 8)
        lengths = .allocate(capacity: count)
        lengths.initialize(repeating: 0, count: count)
        nulls = .allocate(capacity: count)
        nulls.initialize(repeating: 0, count: count)
        cuts = .allocate(capacity: count)
        cuts.initialize(repeating: 0, count: count)
    }

    deinit {
        binds.deallocate()
        buffers.deallocate()
        lengths.deallocate()
        nulls.deallocate()
        cuts.deallocate()
    }

    /// Binds the buffers to the statement. It must be called after every answer, because the server
    /// may return other column types than before.
    func bind(to statement: UnsafeMutablePointer<MYSQL_STMT>) -> Bool {
        guard Int(mysql_stmt_field_count(statement)) == count, let fields = mariadb_stmt_fetch_fields(statement) else {
            return false
        }
        let found = (0..<count).map { Self.kind(of: fields + $0) }
        guard found != kinds else { return true }
        kinds = found
        for column in 0..<count {
            var bind = MYSQL_BIND()
            bind.buffer = buffers + column * Self.room
            bind.buffer_length = UInt(Self.room)
            bind.length = lengths + column
            bind.is_null = nulls + column
            bind.error = cuts + column
            switch kinds[column] {
            case .integer:
                bind.buffer_type = MYSQL_TYPE_LONGLONG
                bind.is_unsigned = fields[column].flags & UInt32(UNSIGNED_FLAG) == 0 ? 0 : 1
            case .bytes: bind.buffer_type = MYSQL_TYPE_BLOB
            case .text, .wholeDecimal, .unreadable: bind.buffer_type = MYSQL_TYPE_STRING
            }
            binds[column] = bind
        }
        return mysql_stmt_bind_result(statement, binds) == 0
    }

    /// Returns the value of a column in the row fetched last; nil if the type cannot be read.
    func value(_ column: Int, of statement: UnsafeMutablePointer<MYSQL_STMT>) -> SQLValue? {
        guard nulls[column] == 0 else { return .null }
        switch kinds[column] {
        case .integer:
            let number = buffers.load(fromByteOffset: column * Self.room, as: Int64.self)
            // The unsigned number does not fit into Int64.
            if binds[column].is_unsigned != 0, number < 0 { return nil }
            return .integer(number)
        case .wholeDecimal:
            return Int64(String(decoding: bytes(column, of: statement), as: UTF8.self)).map { .integer($0) }
        case .text: return .text(String(decoding: bytes(column, of: statement), as: UTF8.self))
        case .bytes: return .blob(bytes(column, of: statement))
        case .unreadable: return nil
        }
    }

    private func bytes(_ column: Int, of statement: UnsafeMutablePointer<MYSQL_STMT>) -> [UInt8] {
        let length = Int(lengths[column])
        guard length > Self.room else {
            return [UInt8](UnsafeRawBufferPointer(start: buffers + column * Self.room, count: length))
        }
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
            var bind = MYSQL_BIND()
            bind.buffer_type = binds[column].buffer_type
            bind.buffer = UnsafeMutableRawPointer(buffer.baseAddress)
            bind.buffer_length = UInt(length)
            filled = mysql_stmt_fetch_column(statement, &bind, UInt32(column), 0) == 0 ? length : 0
        }
    }

    private static func kind(of field: UnsafePointer<MYSQL_FIELD>) -> Kind {
        switch field.pointee.type {
        case MYSQL_TYPE_TINY, MYSQL_TYPE_SHORT, MYSQL_TYPE_INT24, MYSQL_TYPE_LONG, MYSQL_TYPE_LONGLONG,
            MYSQL_TYPE_YEAR:
            .integer
        case MYSQL_TYPE_DECIMAL, MYSQL_TYPE_NEWDECIMAL: field.pointee.decimals == 0 ? .wholeDecimal : .unreadable
        case MYSQL_TYPE_DATE, MYSQL_TYPE_TIME, MYSQL_TYPE_DATETIME, MYSQL_TYPE_TIMESTAMP, MYSQL_TYPE_NULL: .text
        case MYSQL_TYPE_STRING, MYSQL_TYPE_VAR_STRING, MYSQL_TYPE_VARCHAR, MYSQL_TYPE_BLOB, MYSQL_TYPE_TINY_BLOB,
            MYSQL_TYPE_MEDIUM_BLOB, MYSQL_TYPE_LONG_BLOB, MYSQL_TYPE_ENUM, MYSQL_TYPE_SET, MYSQL_TYPE_JSON:
            cmariadb_is_binary(field) == 0 ? .text : .bytes
        default: .unreadable
        }
    }
}
