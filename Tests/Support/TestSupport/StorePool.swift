import Log
import Storage
import Synchronization
import World

/// The MariaDB databases that rigs use one after the other. Their connections stay open, and their
/// statements stay prepared.
///
/// Purpose: creating the tables and preparing the statements takes more processor time than most
/// tests of a relay.
///
/// Invariants:
/// - A database has one borrower at a time. It returns when its loan is released, by the
///   `FreshStore` and by both connections. A test that failed therefore returns it, too.
/// - A database is emptied before it is lent again. The server itself names the tables.
/// - A database is never lent again if others may know its URL, or if a test changed more than rows
///   (`StoreLoan.end`).
///
/// Failures: a database that cannot be emptied is given up, and the rig gets a new one.
///
/// `StorePoolTests.swift` tests it.
package final class StorePool: Sendable {
    static let shared = StorePool()

    /// The most loans of one database. The server keeps the statements of a connection, also those
    /// that only one test used.
    private static let mostLoans = 40

    private let idle = Mutex<[PooledDatabase]>([])

    package init() {}

    /// Lends an empty database.
    func lend() throws -> StoreLoan {
        while let database = idle.withLock({ $0.popLast() }) {
            if (try? database.empty()) != nil { return StoreLoan(of: database, from: self) }
        }
        return StoreLoan(of: try PooledDatabase(), from: self)
    }

    fileprivate func takeBack(_ database: PooledDatabase) {
        guard database.loans.wrappingAdd(1, ordering: .relaxed).newValue < Self.mostLoans else { return }
        idle.withLock { $0.append(database) }
    }
}

extension FreshStore {
    /// Borrows a database of the pool.
    package convenience init(from pool: StorePool) throws { self.init(lent: try pool.lend()) }
}

/// The use of a pooled database by one rig.
final class StoreLoan: Sendable {
    let database: PooledDatabase
    private let pool: StorePool
    private let isOpen = Atomic<Bool>(false)
    private let isOver = Atomic<Bool>(false)

    fileprivate init(of database: PooledDatabase, from pool: StorePool) {
        self.database = database
        self.pool = pool
    }

    deinit { if !isOver.load(ordering: .relaxed) { pool.takeBack(database) } }

    /// Makes the database the borrower's own. Nobody else gets it later.
    func end() { isOver.store(true, ordering: .relaxed) }

    /// Opens a store over the connections of the database; nil if a store has used them already.
    func open(log: Log, options: StoreOptions) throws -> Store? {
        guard !isOpen.exchange(true, ordering: .relaxed) else { return nil }
        return try Store.open(
            over: BorrowedSession(database.writes, of: self), reads: BorrowedSession(database.reads, of: self),
            at: database.url, time: SystemTime(), log: log, options: options)
    }
}

/// A database with its two connections.
final class PooledDatabase: Sendable {
    let url: StorageURL
    let writes: SharedSession
    let reads: SharedSession
    /// The number of loans that are over.
    let loans = Atomic<Int>(0)
    private let deletions: [BoundStatement]
    private let server: MariaDBServer

    fileprivate init() throws {
        server = try MariaDBServer.shared()
        url = try StorageURL(server.urlOverSocket(try server.freshDatabase()))
        try Store.open(
            url, schema: .migrate, time: SystemTime(), log: Log(minimum: .warning), options: .patient
        ).close()
        writes = SharedSession(try url.session(.writing))
        reads = SharedSession(try url.session(.reading))
        deletions = try Self.tables(writes).map(Self.deletion)
    }

    /// Deletes all rows of all tables.
    fileprivate func empty() throws(SessionFailure) {
        let deletions = deletions
        try reads.use { $0.rollBack() }
        try writes.use { (session) throws(SessionFailure) in
            // A store that was closed in a transaction has left it open.
            session.rollBack()
            try session.begin(.writing)
            _ = try session.run(deletions)
            try session.commit()
        }
    }

    private static func tables(_ session: SharedSession) throws -> [String] {
        let rows = try session.use { (session) throws(SessionFailure) in
            try session.begin(.writing)
            defer { session.rollBack() }
            return try session.run([names()]).flatMap { $0 }
        }
        return try rows.map { try $0.text("name") }
    }

    /// The version of the tables is not a row of a test.
    private static let names = Statement(
        """
        SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name <> 'migration'
        """)

    /// The statement that empties a table, declared once for all databases.
    private static func deletion(of table: String) -> BoundStatement {
        known.withLock { known in
            if let statement = known[table] { return statement() }
            let statement = Statement("DELETE FROM \"\(table)\"")
            known[table] = statement
            return statement()
        }
    }

    private static let known = Mutex<[String: Statement]>([:])
}

/// A connection that stays open while its users change.
final class SharedSession: Sendable {
    private let session: Mutex<any Session>

    init(_ session: sending any Session) { self.session = Mutex(session) }

    func use<Value: Sendable>(
        _ body: (any Session) throws(SessionFailure) -> Value
    ) throws(SessionFailure) -> Value {
        try session.withLock { (session) throws(SessionFailure) in try body(session) }
    }
}

/// The session of one store over a shared connection. Its end leaves the connection open.
///
/// Guard: like every session, it is used by one thread at a time.
private final class BorrowedSession: Session {
    private let shared: SharedSession
    /// The loan, until the session is closed.
    private var loan: StoreLoan?

    init(_ shared: SharedSession, of loan: StoreLoan) {
        self.shared = shared
        self.loan = loan
    }

    func begin(_ purpose: Purpose) throws(SessionFailure) {
        guard loan != nil else { throw .refused("the database is closed") }
        try shared.use { (session) throws(SessionFailure) in try session.begin(purpose) }
    }

    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] {
        if !steps.allSatisfy({ Self.changesRowsOnly($0.statement.sql) }) { loan?.end() }
        return try shared.use { (session) throws(SessionFailure) in try session.run(steps) }
    }

    /// Whether a statement leaves the tables, the connection and the server as they are.
    private static func changesRowsOnly(_ sql: String) -> Bool {
        words.contains { sql.utf8.starts(with: $0) }
    }

    private static let words: [[UInt8]] = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "].map { Array($0.utf8) }

    func execute(_ sql: String) throws(SessionFailure) {
        loan?.end()
        try shared.use { (session) throws(SessionFailure) in try session.execute(sql) }
    }

    func commit() throws(SessionFailure) {
        try shared.use { (session) throws(SessionFailure) in try session.commit() }
    }

    func rollBack() { try? shared.use { $0.rollBack() } }

    func close() { loan = nil }

    var changes: Int64 { (try? shared.use { $0.changes }) ?? 0 }
    var place: SessionHost? { (try? shared.use { $0.place }) ?? nil }
}
