import CSQLite
import Glibc
import World

/// A connection to a SQLite file, or to a database in memory.
final class SQLiteSession: Session {
    /// The mode in which a connection is opened.
    enum Mode {
        /// Reads and writes an existing file.
        case writing
        /// Reads and writes a file, and creates it, readable by its owner only, if it does not
        /// exist.
        case creating
        case readingOnly
    }

    let database: OpaquePointer
    private var prepared: [SQLiteStatement?] = []
    private(set) var isOpen = true
    /// The checkpointer that SQLite's hook calls. The session keeps it alive while SQLite may call
    /// it.
    private let log: WALCheckpointer?
    /// The limits of statements; nil if they have none.
    private var limits: UnsafeMutablePointer<csqlite_limits>?

    /// A file has no host.
    let place: SessionHost? = nil

    private static let beginWriting = Statement("BEGIN IMMEDIATE")
    private static let beginReading = Statement("BEGIN")
    private static let commit = Statement("COMMIT")
    private static let rollBack = Statement("ROLLBACK")

    /// Configures SQLite once in each process.
    private static let configured: Void = csqlite_configure()

    /// Opens a database.
    ///
    /// - Parameters:
    ///   - path: the path of the file; nil for a database in memory.
    ///   - mode: the access to the file.
    ///   - timeout: how long a transaction waits for another process that writes.
    ///   - log: the checkpointer; if nil, SQLite itself checkpoints within commits.
    init(path: String?, mode: Mode, timeout: Duration, log: WALCheckpointer? = nil) throws(SessionFailure) {
        self.log = log
        var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        if let path {
            flags |= mode == .readingOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
            if mode == .creating { try Self.create(path) }
        } else {
            flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        }
        Self.configured
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
        // The daemon's sandbox lets it create files only in the directory of the database.
        try execute("PRAGMA temp_store = MEMORY")
        if path != nil, mode != .readingOnly {
            // The log is synced before a commit is answered, so a crash loses no answered commit.
            try useWriteAheadLog()
            try execute("PRAGMA synchronous = FULL")
        }
        // SQLite opens its log at the first read. A relay without free descriptors could not.
        if mode == .readingOnly { try execute("PRAGMA schema_version") }
        if let log { tell(log) }
    }

    deinit {
        close()
        limits?.deallocate()
    }

    /// Limits the statements that follow each call of `allow`. SQLite interrupts one beyond a limit.
    func limitStatements() {
        guard limits == nil else { return }
        let limits = UnsafeMutablePointer<csqlite_limits>.allocate(capacity: 1)
        limits.initialize(to: csqlite_limits())
        self.limits = limits
        csqlite_limit(database, limits)
    }

    /// Allows the next statements together some hundreds of steps of SQLite's machine, and a time.
    func allow(hundreds: Int32, within time: Duration) {
        guard let limits else { return }
        csqlite_allow(limits, hundreds, time.wholeMilliseconds * 1_000_000)
    }

    var hasTakenAllSteps: Bool { limits.map { $0.pointee.hundreds < 0 } ?? false }

    /// Turns the write-ahead log on. If another program does the same with a new database, SQLite
    /// does not wait but reports at once that the database is locked. This function therefore
    /// retries for a second.
    private func useWriteAheadLog() throws(SessionFailure) {
        for _ in 0..<100 {
            do throws(SessionFailure) {
                return try execute("PRAGMA journal_mode = WAL")
            } catch {
                guard case .conflict = error else { throw error }
                // The store opens on a thread that may block, and SQLite has no other way to wait
                // for this.
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
        _ = try run(purpose == .writing ? Self.beginWriting() : Self.beginReading())
    }

    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] {
        var results: [Rows] = []
        results.reserveCapacity(steps.count)
        for step in steps { results.append(try run(step)) }
        return results
    }

    func commit() throws(SessionFailure) { _ = try run(Self.commit()) }

    func rollBack() {
        // After a full disk or an I/O error, SQLite may have rolled back already.
        guard isOpen, sqlite3_get_autocommit(database) == 0 else { return }
        _ = try? run(Self.rollBack())
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
        let ready: SQLiteStatement
        if let known = prepared[index] {
            ready = known
        } else {
            ready = try SQLiteStatement(step.statement, on: database)
            prepared[index] = ready
        }
        if limits != nil { ready.forgetSteps() }
        return try ready.run(step.values)
    }
}

/// The translation of SQLite's result codes.
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
