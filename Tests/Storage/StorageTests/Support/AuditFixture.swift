import Bytes
import Domain
import EventLoop
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// A database with an audit that several programs have written.
struct AuditFixture {
    let database: TestDatabase
    private let raw: any Session

    static let key = RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret"))

    init(_ engine: Engine) throws {
        database = try engine.database(Migration.all)
        try database.open().close()
        raw = try database.url.session(.writing)
    }

    func close() { raw.close() }

    /// Opens a store as a program does.
    func open(
        _ program: String = "relay", keys: [RowAuthenticator.Key] = [key], batch: Int = 128, reason: String? = nil,
        personal: PersonalSealer? = nil
    ) throws -> Store {
        var options = StoreOptions.patient
        options.rows = try RowAuthenticator(keys: keys)
        options.author = AuditAuthor(program: program, host: "host", actor: "\(program) host", reason: reason)
        options.batch = batch
        options.personal = personal
        return try database.open(options: options)
    }

    /// Opens a store whose clock the test sets, so that links have times of the test.
    func open(at time: TestTime, batch: Int = 128) throws -> Store {
        var options = StoreOptions.patient
        options.rows = try RowAuthenticator(keys: [Self.key])
        options.batch = batch
        return try database.open(time: time, options: options)
    }

    private static let insertRelay = Statement("INSERT INTO relay VALUES (:relay, 0, :now)")

    /// Adds the relay that deletes old rows.
    static func addRelay(to store: Store, at now: Timestamp) async throws {
        _ = try await store.run(
            Script("relay", writes: [insertRelay(relay: .id(Sample.relay), now: .timestamp(now))]))
    }

    /// Runs retention until nothing is left to delete, and returns the number of rows. The thread waits.
    @discardableResult
    static func dropAll(_ store: Store, before: Timestamp) throws -> Int {
        let loop = try EventLoop(name: "retention", time: SystemTime())
        let outcome = Mutex<Result<Int, any Error>>(.success(0))
        loop.post {
            loop.spawn {
                var count = 0
                do {
                    while true {
                        let dropped = try await store.drop(ExpiredRows(.audit, before: before), by: Sample.relay)
                        guard let dropped else { break }
                        count += dropped.count
                        if dropped.isLast { break }
                    }
                    outcome.withLock { [count] in $0 = .success(count) }
                } catch {
                    outcome.withLock { $0 = .failure(error) }
                }
                loop.stop()
            }
        }
        loop.run()
        return try outcome.withLock { $0 }.get()
    }

    /// Writes rows, as many at once as a batch takes.
    static func write(_ count: Int, to store: Store, event: String = "test", note: String? = "words") throws {
        _ = try store.runBlocking((0..<count).map { _ in script(event: event, note: note) })
    }

    static func script(
        _ operation: [UInt8] = TestScript.fresh(), event: String = "test", user: [UInt8]? = nil, note: String? = "words"
    ) -> Script {
        Script(
            "test", operation: operation,
            writes: [
                insert(
                    operation: .blob(operation), now: .timestamp(Sample.now), event: .text(event), user: .blob(user),
                    note: .text(note), changes: .null)
            ])
    }

    static let insert = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, user_id, outcome)
        SELECT :operation, :now, :event, :user, 7 /*M! FROM DUAL */ WHERE 1 = 1
        \(Audit.once)
        """)

    /// Checks the audit with the present keys.
    func verify(
        heads: [AuditHead]? = nil, keys: [RowAuthenticator.Key] = [key], personal: PersonalSealer? = nil,
        at now: Timestamp = SystemTime().now()
    ) throws -> AuditVerification {
        let store = try open(keys: keys, personal: personal)
        defer { store.close() }
        return try AuditVerification.run(store, heads: Self.reader(heads), at: now)
    }

    /// Checks the audit. Before a statement that contains `text` runs for the given time, the check waits
    /// for `change`.
    func verify(
        heads: [AuditHead]? = nil, before text: String, occurrence: Int = 1, at now: Timestamp = SystemTime().now(),
        _ change: @escaping @Sendable () throws -> Void
    ) throws -> AuditVerification {
        let seen = Mutex(0)
        let authenticator = try RowAuthenticator(keys: [Self.key])
        let store = try Store.watched(at: database.url, rows: authenticator) {
            (steps, session) throws(SessionFailure) in
            let number = seen.withLock { seen in
                if steps.contains(where: { $0.statement.sql.contains(text) }) { seen += 1 }
                return seen
            }
            if number == occurrence {
                seen.withLock { $0 += 1_000_000 }
                do { try change() } catch { throw .statement("\(error)") }
            }
            return try session.run(steps)
        }
        defer { store.close() }
        let check = try AuditVerification.run(store, heads: Self.reader(heads), at: now)
        #expect(seen.withLock { $0 } >= 1_000_000, "the change did not run")
        return check
    }

    static func reader(_ heads: [AuditHead]?) -> AuditHeadReader? {
        guard let heads else { return nil }
        func read(_ body: (AuditHead) -> Void) throws(StoreFailure) { for head in heads { body(head) } }
        return read
    }

    func heads() throws -> [AuditHead] {
        let store = try open()
        defer { store.close() }
        return try store.runBlocking(AuditHeadCandidate.page(after: [])).compactMap(\.head)
    }

    /// Changes the database as an attacker does.
    func forge(_ statements: String...) throws {
        try raw.begin(.writing)
        for statement in statements { try raw.execute(statement) }
        try raw.commit()
    }

    func rows(_ sql: String) throws -> Rows {
        try raw.begin(.writing)
        let rows = try raw.run([Statement(sql)()])
        try raw.commit()
        return rows[0]
    }

    /// Runs `body` while the rows of `tables` that `condition` names are changed, and restores them.
    func changing(_ tables: [String], where condition: String, _ change: [String], _ body: () throws -> Void) throws {
        for table in tables {
            try raw.execute("CREATE TABLE kept_\(table) AS SELECT * FROM \(table) WHERE \(condition)")
        }
        try raw.begin(.writing)
        for statement in change { try raw.execute(statement) }
        try raw.commit()
        try body()
        for table in tables {
            let insertion = "INSERT INTO \(table) SELECT * FROM kept_\(table)"
            try forge("DELETE FROM \(table) WHERE \(condition)", insertion)
            try raw.execute("DROP TABLE kept_\(table)")
        }
    }
}
