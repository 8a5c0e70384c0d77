import Bytes
import TestSupport
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
        _ program: String = "relay", keys: [RowAuthenticator.Key] = [key], batch: Int = 128, reason: String? = nil
    ) throws -> Store {
        var options = StoreOptions.patient
        options.rows = try RowAuthenticator(keys: keys)
        options.author = AuditAuthor(program: program, host: "host", actor: "\(program) host", reason: reason)
        options.batch = batch
        return try database.open(options: options)
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
    func verify(heads: [AuditHead] = [], keys: [RowAuthenticator.Key] = [key]) throws -> AuditVerification {
        let store = try open(keys: keys)
        defer { store.close() }
        return try AuditVerification.run(store, heads: heads)
    }

    func heads() throws -> [AuditHead] {
        let store = try open()
        defer { store.close() }
        return try store.runBlocking(AuditHead.page(after: nil))
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
