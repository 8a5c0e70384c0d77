import CSQLite
import Glibc

/// A consistent copy of a SQLite store, made while a relay writes to it.
///
/// SQLite's online backup copies the pages of the database and of its write-ahead log. By itself it
/// begins anew whenever another process has written, so under load it would never end. Here the
/// source is in one read transaction from the first page to the last: the copy is the store at one
/// moment, and nobody waits for it. Meanwhile the log of the source grows, since SQLite cannot
/// reuse the parts that this transaction may still read.
///
/// The copy is one file without a log. It is verified against the numbers of rows of that moment,
/// and by SQLite's own check. Tests: `SQLiteBackupTests`.
public enum SQLiteBackup {
    public struct Fault: Error, Sendable, Equatable {
        public let reason: String
    }

    /// The number of rows of each table.
    public typealias Counts = [String: Int64]

    /// The pages that are copied between two reports of progress, four megabytes.
    private static let pagesAtOnce: Int32 = 1024

    /// Copies a database into an empty file, and verifies the copy.
    ///
    /// - Parameter progress: is told the number of pages that are copied, and of all.
    /// - Returns: the number of rows of each table in the copy.
    public static func copy(
        _ path: String, to file: String, progress: (Int, Int) -> Void = { _, _ in }
    ) throws(Fault) -> Counts {
        let counts = try copyPages(path, to: file, progress)
        let copy = try Database(file)
        // Otherwise the copy would need a log beside it, and whoever moves it might forget that.
        guard try copy.text("PRAGMA journal_mode = DELETE") == "delete" else {
            throw Fault(reason: "\(file): the copy cannot be made a single file")
        }
        let verdict = try copy.text("PRAGMA integrity_check(1)")
        guard verdict == "ok" else { throw Fault(reason: "\(file): the copy is damaged: \(verdict)") }
        guard try copy.counts() == counts else {
            throw Fault(reason: "\(file): the copy has other numbers of rows than the store")
        }
        return counts
    }

    /// Moves the log of a database that nobody else has open into its file. Afterwards the file is
    /// complete without a log.
    public static func settle(_ path: String) throws(Fault) {
        let database = try Database(path)
        guard try database.text("PRAGMA journal_mode = DELETE") == "delete" else {
            throw Fault(reason: "\(path): another program has the store open")
        }
    }

    private static func copyPages(
        _ path: String, to file: String, _ progress: (Int, Int) -> Void
    ) throws(Fault) -> Counts {
        let source = try Database(path)
        let target = try Database(file)
        // The first read begins the snapshot.
        try source.execute("BEGIN")
        let counts = try source.counts()
        guard let backup = sqlite3_backup_init(target.handle, "main", source.handle, "main") else {
            throw target.fault
        }
        var status = SQLITE_OK
        while status == SQLITE_OK {
            status = sqlite3_backup_step(backup, pagesAtOnce)
            let all = Int(sqlite3_backup_pagecount(backup))
            progress(all - Int(sqlite3_backup_remaining(backup)), all)
        }
        // It also returns the error of a step.
        guard sqlite3_backup_finish(backup) == SQLITE_OK, status == SQLITE_DONE else { throw target.fault }
        try source.execute("COMMIT")
        return counts
    }

    /// A connection that reads and writes an existing file, and changes no settings of it.
    private final class Database {
        let handle: OpaquePointer
        let path: String

        init(_ path: String) throws(Fault) {
            var opened: OpaquePointer?
            let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
            let status = sqlite3_open_v2(path, &opened, flags, nil)
            guard let opened else { throw Fault(reason: "SQLite has no memory left") }
            handle = opened
            self.path = path
            guard status == SQLITE_OK else { throw Self.fault(path, opened) }
            csqlite_harden(handle)
            sqlite3_busy_timeout(handle, 10_000)
        }

        deinit { sqlite3_close_v2(handle) }

        var fault: Fault { Self.fault(path, handle) }

        private static func fault(_ path: String, _ handle: OpaquePointer) -> Fault {
            Fault(reason: "\(path): \(String(cString: sqlite3_errmsg(handle)))")
        }

        func execute(_ sql: String) throws(Fault) {
            guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw fault }
        }

        func text(_ sql: String) throws(Fault) -> String {
            guard let first = try column(sql).first else { throw Fault(reason: "\(path): no answer to \(sql)") }
            return first
        }

        /// Returns the first column of all rows.
        func column(_ sql: String) throws(Fault) -> [String] {
            var statement: OpaquePointer?
            guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { throw fault }
            defer { sqlite3_finalize(statement) }
            var values: [String] = []
            while true {
                switch sqlite3_step(statement) {
                case SQLITE_ROW: values.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
                case SQLITE_DONE: return values
                default: throw fault
                }
            }
        }

        func counts() throws(Fault) -> Counts {
            var counts: Counts = [:]
            let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
            for name in try column(names) { counts[name] = Int64(try text("SELECT count(*) FROM \"\(name)\"")) }
            return counts
        }
    }
}
