import CSQLite
import Glibc

/// A connection to a SQLite file, or to a database in memory.
final class SQLiteSession: Session {
    /// How a connection is opened.
    enum Mode {
        /// Reads and writes a file that is there.
        case writing
        /// The same, and makes the file, readable by its owner alone, if it is not there.
        case creating
        case readingOnly
    }

    let database: OpaquePointer
    private var prepared: [SQLiteStatement?] = []
    private(set) var isOpen = true
    /// Held for as long as SQLite may call it.
    private let log: WALCheckpointer?

    /// A file is no host.
    let place: SessionHost? = nil

    private static let beginWriting = Statement("BEGIN IMMEDIATE")
    private static let beginReading = Statement("BEGIN")
    private static let commit = Statement("COMMIT")
    private static let rollBack = Statement("ROLLBACK")

    /// Nil is a database in memory. `timeout` is how long a transaction waits for another process that writes. Without
    /// `log`, SQLite brings its write-ahead log into the file within commits.
    init(path: String?, mode: Mode, timeout: Duration, log: WALCheckpointer? = nil) throws(SessionFailure) {
        self.log = log
        var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        if let path {
            flags |= mode == .readingOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
            if mode == .creating { try Self.create(path) }
        } else {
            flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        }
        var opened: OpaquePointer?
        let status = sqlite3_open_v2(path ?? ":memory:", &opened, flags, nil)
        guard let opened else { throw .refused("SQLite has no memory left") }
        database = opened
        guard status == SQLITE_OK else {
            let failure = SQLiteFailure.of(status, opened)
            sqlite3_close_v2(opened)
            isOpen = false
            throw .refused("\(path ?? ":memory:"): \(failure.message)")
        }
        csqlite_harden(database)
        sqlite3_busy_timeout(
            database,
            Int32(clamping: timeout.components.seconds * 1000)
                + Int32(clamping: timeout.components.attoseconds / 1_000_000_000_000_000))
        try execute("PRAGMA foreign_keys = ON")
        // The daemon may make no files but in the directory of the database.
        try execute("PRAGMA temp_store = MEMORY")
        if path != nil, mode != .readingOnly {
            // The log is written and synced before a commit is answered; a crash loses nothing that was.
            try useWriteAheadLog()
            try execute("PRAGMA synchronous = FULL")
        }
        if let log { tell(log) }
    }

    deinit { close() }

    /// Turns the write-ahead log on. SQLite does not wait while another program does the same to a
    /// new database, but says at once that it is locked; so this tries again for a second.
    private func useWriteAheadLog() throws(SessionFailure) {
        for _ in 0..<100 {
            do throws(SessionFailure) {
                return try execute("PRAGMA journal_mode = WAL")
            } catch {
                guard case .conflict = error else { throw error }
                // The store is being opened on a thread that may block, and SQLite has no way to wait for this.
                usleep(10_000)
            }
        }
        try execute("PRAGMA journal_mode = WAL")
    }

    private static func create(_ path: String) throws(SessionFailure) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .refused("\(path): \(String(cString: strerror(errno)))") }
        Glibc.close(file)
    }

    func begin(_ purpose: Purpose) throws(SessionFailure) {
        guard isOpen else { throw .refused("the database is closed") }
        _ = try run(BoundStatement(purpose == .writing ? Self.beginWriting : Self.beginReading))
    }

    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] {
        var results: [Rows] = []
        results.reserveCapacity(steps.count)
        for step in steps { results.append(try run(step)) }
        return results
    }

    func commit() throws(SessionFailure) { _ = try run(BoundStatement(Self.commit)) }

    func rollBack() {
        // After a full disk or an I/O error SQLite may have rolled back by itself.
        guard isOpen, sqlite3_get_autocommit(database) == 0 else { return }
        _ = try? run(BoundStatement(Self.rollBack))
    }

    func execute(_ sql: String) throws(SessionFailure) {
        let status = sqlite3_exec(database, sql, nil, nil, nil)
        guard status == SQLITE_OK else { throw SQLiteFailure.of(status, database) }
    }

    var changes: Int64 { isOpen ? sqlite3_total_changes64(database) : 0 }

    func close() {
        guard isOpen else { return }
        isOpen = false
        prepared = []
        sqlite3_close_v2(database)
    }

    private func run(_ step: BoundStatement) throws(SessionFailure) -> Rows {
        let index = step.statement.index
        while prepared.count <= index { prepared.append(nil) }
        if let ready = prepared[index] { return try ready.run(step.values) }
        let fresh = try SQLiteStatement(step.statement, on: database)
        prepared[index] = fresh
        return try fresh.run(step.values)
    }
}

/// What SQLite's result codes come down to.
enum SQLiteFailure {
    static func of(_ status: Int32, _ database: OpaquePointer) -> SessionFailure {
        let message = "\(String(cString: sqlite3_errmsg(database))) (SQLite \(status))"
        switch status & 0xff {
        case SQLITE_BUSY, SQLITE_LOCKED: return .conflict(message)
        case SQLITE_FULL, SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH, SQLITE_CORRUPT,
            SQLITE_NOTADB, SQLITE_NOMEM, SQLITE_PROTOCOL, SQLITE_NOLFS, SQLITE_INTERRUPT:
            return .refused(message)
        default: return .statement(message)
        }
    }
}
