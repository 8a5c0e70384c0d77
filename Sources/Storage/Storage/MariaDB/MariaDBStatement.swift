import CMariaDB

/// A prepared statement on one connection. It may be sent several times before its answers are
/// read. The answers come in the order of sending.
final class MariaDBStatement {
    private let connection: UnsafeMutablePointer<MYSQL>
    private let handle: UnsafeMutablePointer<MYSQL_STMT>
    private let text: StatementText.Dialected
    private let binds: UnsafeMutablePointer<MYSQL_BIND>
    private let integers: UnsafeMutablePointer<Int64>
    private var columns: MariaDBColumns?
    /// The number of rows of values that an execution takes; 0 without an array.
    private var arraySize = 0

    init(_ statement: Statement, on connection: UnsafeMutablePointer<MYSQL>) throws(SessionFailure) {
        let text = statement.text.mariadb
        let sql = text.sql
        guard let handle = mysql_stmt_init(connection) else { throw .refused("libmariadb has no memory left") }
        guard cmariadb_prepare(handle, sql, UInt(sql.utf8.count)) == 0 else {
            let failure = Self.failure(handle, connection, sql)
            mysql_stmt_close(handle)
            throw failure
        }
        let parameters = Int(mysql_stmt_param_count(handle))
        guard parameters == text.slots.count else {
            mysql_stmt_close(handle)
            throw .statement("other parameters than MariaDB finds were found in: \(sql)")
        }
        self.connection = connection
        self.handle = handle
        self.text = text
        binds = .allocate(capacity: max(1, parameters))
        binds.initialize(repeating: MYSQL_BIND(), count: max(1, parameters))
        integers = .allocate(capacity: max(1, parameters))
        integers.initialize(repeating: 0, count: max(1, parameters))
    }

    deinit {
        mysql_stmt_close(handle)
        binds.deallocate()
        integers.deallocate()
    }

    /// The places of the parameters' values.
    var slots: [Int] { text.slots }

    func check(_ values: [SQLValue]) throws(SessionFailure) {
        guard text.values == values.count else {
            throw .statement("\(text.values) values are wanted and \(values.count) are given in: \(text.sql)")
        }
        guard !values.contains(where: { if case .personal = $0 { true } else { false } }) else {
            throw .statement("a personal value was not resolved for: \(text.sql)")
        }
    }

    /// Sends the statement without waiting, once for all steps.
    func send(_ steps: ArraySlice<BoundStatement>) throws(SessionFailure) {
        guard let first = steps.first else { return }
        if steps.count == 1 { try send(first.values) } else { try sendArray(steps.map(\.values)) }
    }

    private func setArraySize(_ count: Int) {
        guard arraySize != count else { return }
        var size = UInt32(count)
        mysql_stmt_attr_set(handle, STMT_ATTR_ARRAY_SIZE, &size)
        arraySize = count
    }

    private func send(_ values: [SQLValue]) throws(SessionFailure) {
        setArraySize(0)
        var texts: [UInt8] = []
        for slot in text.slots {
            switch values[slot] {
            case .text(let text): texts.append(contentsOf: text.utf8)
            case .blob(let blob): texts.append(contentsOf: blob)
            case .null, .integer, .personal: break
            }
        }
        // libmariadb copies the values into its packet before it returns, so the buffer lives long
        // enough.
        let isSent = texts.withUnsafeMutableBytes { buffer in
            // A value without bytes still needs an address; a null pointer would mean NULL.
            let start = buffer.baseAddress ?? UnsafeMutableRawPointer(integers)
            var at = 0
            for (index, slot) in text.slots.enumerated() {
                var bind = MYSQL_BIND()
                switch values[slot] {
                case .null, .personal: bind.buffer_type = MYSQL_TYPE_NULL
                case .integer(let number):
                    integers[index] = number
                    bind.buffer_type = MYSQL_TYPE_LONGLONG
                    bind.buffer = UnsafeMutableRawPointer(integers + index)
                case .text(let text):
                    bind.buffer_type = MYSQL_TYPE_STRING
                    bind.buffer_length = UInt(text.utf8.count)
                    bind.buffer = start + at
                    at += text.utf8.count
                case .blob(let blob):
                    bind.buffer_type = MYSQL_TYPE_BLOB
                    bind.buffer_length = UInt(blob.count)
                    bind.buffer = start + at
                    at += blob.count
                }
                binds[index] = bind
            }
            return (text.slots.isEmpty || mysql_stmt_bind_param(handle, binds) == 0) && mysql_stmt_execute(handle) == 0
        }
        // After any failure here, the outstanding answers cannot be assigned to statements any
        // more.
        guard isSent else { throw .lost(failure().message) }
    }

    /// Sends one execution with several rows of values.
    private func sendArray(_ rows: [[SQLValue]]) throws(SessionFailure) {
        setArraySize(rows.count)
        let array = MariaDBArrayBuffer(rows, text.slots)
        // libmariadb copies the values into its packet before it returns, as above.
        let isSent = withExtendedLifetime(array) {
            for index in text.slots.indices { binds[index] = array.bind(index) }
            return mysql_stmt_bind_param(handle, binds) == 0 && mysql_stmt_execute(handle) == 0
        }
        guard isSent else { throw .lost(failure().message) }
    }

    /// Reads the whole answer, unless the connection is lost.
    func receive() throws(SessionFailure) -> Rows {
        guard cmariadb_read_answer(handle) == 0 else { throw failure() }
        let count = Int(mysql_stmt_field_count(handle))
        guard count > 0 else {
            return Rows(changes: Int64(clamping: mysql_stmt_affected_rows(handle)))
        }
        let columns = self.columns ?? MariaDBColumns(count: count, of: handle, text.sql)
        self.columns = columns
        guard columns.bind(to: handle) else { throw .lost(failure().message) }
        var values: [SQLValue] = []
        // Most results have at most one row.
        values.reserveCapacity(count)
        var unreadable: Int?
        while true {
            switch mysql_stmt_fetch(handle) {
            case 0, MYSQL_DATA_TRUNCATED:
                for column in 0..<count {
                    let value = columns.value(column, of: handle)
                    if value == nil { unreadable = column }
                    values.append(value ?? .null)
                }
            case MYSQL_NO_DATA:
                if let unreadable {
                    throw .statement("column \(unreadable) is of a type that is not read, in: \(text.sql)")
                }
                return Rows(columns.names, values)
            default:
                throw failure()
            }
        }
    }

    private func failure() -> SessionFailure { Self.failure(handle, connection, text.sql) }

    private static func failure(
        _ handle: UnsafeMutablePointer<MYSQL_STMT>, _ connection: UnsafeMutablePointer<MYSQL>, _ sql: String
    ) -> SessionFailure {
        let own = mysql_stmt_errno(handle)
        let failure = MariaDBFailure.of(
            own == 0 ? mysql_errno(connection) : own,
            String(cString: own == 0 ? mysql_error(connection) : mysql_stmt_error(handle)))
        if case .statement(let message) = failure { return .statement("\(message) in: \(sql)") }
        return failure
    }
}
