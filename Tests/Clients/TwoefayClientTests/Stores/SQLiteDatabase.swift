import CSQLite
import TwoefayClient

/// A file of SQLite as a website would use it, with one connection for each transaction, so that two
/// transactions wait for each other's locks as those of two processes do.
struct SQLiteDatabase: StoreDatabase {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let path: String

    func transaction<Value: Sendable>(
        _ work: @escaping @concurrent @Sendable (_ execute: @escaping StoreExecute) async throws -> Value
    ) async throws -> Value {
        let connection = try Connection(path)
        _ = try connection.rows("BEGIN", [])
        do {
            let value = try await work { statement, values in try connection.rows(statement, values) }
            _ = try connection.rows("COMMIT", [])
            return value
        } catch {
            _ = try? connection.rows("ROLLBACK", [])
            throw error
        }
    }

    /// A connection that one task uses at a time: `@unchecked`, because SQLite itself serialises calls.
    private final class Connection: @unchecked Sendable {
        private let handle: OpaquePointer?

        init(_ path: String) throws {
            var handle: OpaquePointer?
            let status = sqlite3_open(path, &handle)
            self.handle = handle
            guard status == SQLITE_OK else { throw Failure(description: "\(path): \(status)") }
            sqlite3_busy_timeout(handle, 60_000)
        }

        deinit { sqlite3_close(handle) }

        func rows(_ text: String, _ values: [StoreValue]) throws -> [[String]] {
            var statement: OpaquePointer?
            guard sqlite3_prepare_v2(handle, text, -1, &statement, nil) == SQLITE_OK else { throw failure(text) }
            defer { sqlite3_finalize(statement) }
            for (index, value) in values.enumerated() {
                switch value {
                case .integer(let number): sqlite3_bind_int64(statement, Int32(index + 1), number)
                case .text(let value):
                    // SQLite copies the text: -1 stands for SQLITE_TRANSIENT.
                    let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
                    sqlite3_bind_text(statement, Int32(index + 1), value, -1, copies)
                }
            }
            var rows: [[String]] = []
            while true {
                switch sqlite3_step(statement) {
                case SQLITE_DONE: return rows
                case SQLITE_ROW:
                    rows.append(
                        (0..<sqlite3_column_count(statement)).map { column in
                            sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
                        })
                default: throw failure(text)
                }
            }
        }

        private func failure(_ statement: String) -> Failure {
            Failure(description: "\(statement): \(String(cString: sqlite3_errmsg(handle)))")
        }
    }
}
