import World

/// A numbered change of the tables. Every statement of it can be run again after a crash in the middle: MariaDB commits
/// each by itself.
///
/// Relays are replaced one at a time, with logins going on: first the programs, on the tables of the version before,
/// then the tables. So a change adds what programs of the version before need not know (tables, columns that may be NULL
/// or have a default, indices), and what only the new tables can hold is used where `Store.schemaVersion` says so. What
/// an older program still uses is taken away a version later.
struct Migration: Sendable {
    let version: Int64
    /// The oldest tables on which a program works that knows no version after this one.
    let worksOn: Int64
    /// The oldest program that works on the tables of this version, by the newest version that it knows.
    let least: Int64
    /// Statements as `schema.sql` writes them.
    let file: String

    /// Where nothing else is said: this version's programs and tables need each other.
    init(version: Int64, worksOn: Int64? = nil, least: Int64? = nil, file: String) {
        self.version = version
        self.worksOn = worksOn ?? version
        self.least = least ?? version
        self.file = file
    }

    /// All there are, oldest first, numbered without a gap. The first is 2: in stores of schema 1
    /// secrets were derived from ids and the master key. These were never released, and `migrate`
    /// refuses them.
    static let all = [Migration(version: 2, file: SchemaText.sql)]
}

extension [Migration] {
    private static var table: String {
        """
        CREATE TABLE IF NOT EXISTS migration (
            version bigint NOT NULL PRIMARY KEY,
            applied_at datetime(3) NOT NULL,
            least bigint NOT NULL       -- the oldest program that works on these tables, by the newest version that it knows
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */
        """
    }

    private static let isThere = Statement(
        """
        SELECT COUNT(*) FROM /*S! sqlite_master WHERE type = 'table' AND name = 'migration' */
        /*M! information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'migration' */
        """)
    private static let newest = Statement("SELECT version, least FROM migration ORDER BY version DESC LIMIT 1")
    // Somebody who was taken for dead may have done the same meanwhile.
    private static let record = Statement(
        """
        INSERT INTO migration (version, applied_at, least) VALUES (?, ?, ?)
        /*M! ON DUPLICATE KEY UPDATE version = migration.version */ /*S! ON CONFLICT DO NOTHING */
        """)
    // Two programs that migrate at once: the second one waits, and then finds nothing to do. SQLite's transaction does
    // the same by itself, and between the nodes of a cluster a `MigrationLock`.
    private static let lock = Statement("SELECT GET_LOCK(CONCAT(DATABASE(), '.migration'), 600)")
    private static let unlock = Statement("SELECT RELEASE_LOCK(CONCAT(DATABASE(), '.migration'))")
    private static let mostTries = 20

    var known: Int64 { last?.version ?? 0 }

    /// The version of the tables; a failure that says what to do if this program cannot work with them.
    func check(_ session: any Session) throws(SessionFailure) -> Int64 {
        try session.begin(.reading)
        let found: (version: Int64, least: Int64)?
        do throws(SessionFailure) {
            found = try present(session)
            try session.commit()
        } catch {
            session.rollBack()
            throw error
        }
        guard let found else { throw .refused("the database has no tables yet: run `twoefay migrate`") }
        try refuseForerunner(found.version)
        let oldest = last?.worksOn ?? 0
        guard found.version >= oldest else {
            throw .refused(
                "the database has schema \(found.version) and this program needs \(oldest): run `twoefay migrate`")
        }
        guard found.version <= known || found.least <= known else {
            throw .refused(
                "the database has schema \(found.version) and this program knows no more than \(known): "
                    + "install the version that made it, or a later one")
        }
        return found.version
    }

    /// Brings the tables up to date. Does nothing if they are, and nothing to tables that are newer.
    func migrate(_ session: any Session, _ dialect: Dialect, now: Timestamp) throws(SessionFailure) {
        var tries = 0
        while true {
            tries += 1
            do throws(SessionFailure) {
                return try migrateOnce(session, dialect, now: now)
            } catch {
                switch error {
                case .conflict where tries < Self.mostTries, .locked where tries < Self.mostTries: continue
                default: throw error
                }
            }
        }
    }

    private func migrateOnce(_ session: any Session, _ dialect: Dialect, now: Timestamp) throws(SessionFailure) {
        try session.begin(.writing)
        var claim: MigrationLock?
        // Only at the end: who gets the lock must find the version. If it cannot be said any more, the connection's end
        // says it.
        defer {
            claim?.release()
            if dialect == .mariadb { _ = try? session.run([BoundStatement(Self.unlock)]) }
        }
        do throws(SessionFailure) {
            if dialect == .mariadb, try session.run([BoundStatement(Self.lock)]).first?.first?.isOne != true {
                throw .refused("another program has been migrating this database for ten minutes: wait for it")
            }
            if let found = try present(session) {
                try refuseForerunner(found.version)
                if found.version >= known { return try session.commit() }
            }
            if dialect == .mariadb, try MigrationLock.isNeeded(session) { claim = try MigrationLock(session) }
            try session.execute(dialect.resolve(Self.table))
            let present = try present(session)?.version ?? 0
            for migration in self where migration.version > present {
                for statement in dialect.statements(of: migration.file) {
                    do throws(SessionFailure) {
                        try claim?.renew()
                        try session.execute(statement)
                    } catch {
                        throw error.named { "schema \(migration.version): \($0) in: \(statement.prefix(200))" }
                    }
                }
                _ = try session.run([
                    BoundStatement(Self.record, .integer(migration.version), .timestamp(now), .integer(migration.least))
                ])
            }
            try session.commit()
        } catch {
            session.rollBack()
            throw error
        }
    }

    /// A store from before the first version that there is a way from.
    private func refuseForerunner(_ version: Int64) throws(SessionFailure) {
        guard let first, version < first.version else { return }
        throw .refused(
            "the database has schema \(version), which cannot be brought up to date: "
                + "start anew with an empty database and `twoefay migrate`")
    }

    /// What was made last. Nil before the first migration.
    private func present(_ session: any Session) throws(SessionFailure) -> (version: Int64, least: Int64)? {
        guard try session.run([BoundStatement(Self.isThere)]).first?.first?.isOne == true else { return nil }
        let rows = try session.run([BoundStatement(Self.newest)])
        guard let row = rows.first?.first, case .integer(let version)? = try? row.value(0),
            case .integer(let least)? = try? row.value(1)
        else { return nil }
        return (version, least)
    }
}

extension Row {
    fileprivate var isOne: Bool { (try? value(0)) == .integer(1) }
}

extension SessionFailure {
    fileprivate func named(_ name: (String) -> String) -> SessionFailure {
        switch self {
        case .statement(let text): .statement(name(text))
        case .conflict(let text): .conflict(name(text))
        case .locked(let text): .locked(name(text))
        case .lost(let text): .lost(name(text))
        case .refused(let text): .refused(name(text))
        }
    }
}
