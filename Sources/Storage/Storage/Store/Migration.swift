import World

/// A numbered change of the tables.
///
/// Purpose: operators replace relays one at a time, while logins continue. They first install the
/// new programs, which still use the old tables, then they run `twoefay migrate`. A change
/// therefore only adds what programs of the previous version can ignore: tables, indices, and
/// columns that may be NULL or have a default. A program uses new tables and columns only if
/// `Store.schemaVersion` includes them. A later version removes what no program uses any more.
///
/// Invariants: versions have no gaps. Every statement can run again after a crash in the middle,
/// because MariaDB commits each statement of a schema change by itself. One program at a time
/// migrates a database: by SQLite's transaction, by `GET_LOCK` on one MariaDB server, and by
/// `MigrationLock` in a Galera cluster.
///
/// Failures: a program and the tables are too far apart. `check` then refuses to start and says
/// what to do.
///
/// `MigrationTests.swift`, `RollingUpgradeTests.swift`, `MigrationLockTests.swift` and
/// `ClusterTests.swift` test it.
struct Migration: Sendable {
    let version: Int64
    /// The oldest tables with which a program of this version works.
    let worksOn: Int64
    /// The oldest program that works with the tables of this version, as the newest version that
    /// the program knows.
    let least: Int64
    /// The SQL statements, in the form of `schema.sql`.
    let file: String

    /// Creates a migration. By default this version's programs and tables need each other.
    init(version: Int64, worksOn: Int64? = nil, least: Int64? = nil, file: String) {
        self.version = version
        self.worksOn = worksOn ?? version
        self.least = least ?? version
        self.file = file
    }

    /// All migrations, oldest first, without a gap. The first version is 2: in stores of schema 1,
    /// secrets were derived from ids and the master key. Schema 1 was never released, and `migrate`
    /// refuses it.
    static let all = [Migration(version: 2, file: SchemaText.sql)]
}

extension [Migration] {
    private static let mostTries = 20

    var known: Int64 { last?.version ?? 0 }

    /// Returns the version of the tables. If this program cannot work with them, the failure says
    /// what to do.
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

    /// Brings the tables up to date. It changes nothing if they are up to date or newer.
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
        var clusterLock: MigrationLock?
        // Releases the locks last: the next program that gets them must find the new version. If
        // the release fails, the end of the connection releases the lock of MariaDB.
        defer {
            clusterLock?.release()
            if dialect == .mariadb { _ = try? session.run([Self.unlock()]) }
        }
        do throws(SessionFailure) {
            if dialect == .mariadb, try session.run([Self.lock()]).first?.first?.isOne("is_locked") != true {
                throw .refused("another program has been migrating this database for ten minutes: wait for it")
            }
            if let found = try present(session) {
                try refuseForerunner(found.version)
                if found.version >= known { return try session.commit() }
            }
            if dialect == .mariadb, try MigrationLock.isNeeded(session) {
                clusterLock = try MigrationLock(session)
            }
            try session.execute(dialect.resolve(Self.table))
            let present = try present(session)?.version ?? 0
            for migration in self where migration.version > present {
                for statement in dialect.statements(of: migration.file) {
                    do throws(SessionFailure) {
                        try clusterLock?.renew()
                        try session.execute(statement)
                    } catch {
                        throw error.named { "schema \(migration.version): \($0) in: \(statement.prefix(200))" }
                    }
                }
                _ = try session.run([
                    Self.record(
                        version: .integer(migration.version), now: .timestamp(now), least: .integer(migration.least))
                ])
            }
            try session.commit()
        } catch {
            session.rollBack()
            throw error
        }
    }

    // If two programs migrate at the same time, the second one waits and then finds nothing to do.
    // In SQLite the transaction has this effect; between the nodes of a cluster `MigrationLock` has
    // it.
    private static let lock = Statement("SELECT GET_LOCK(CONCAT(DATABASE(), '.migration'), 600) AS is_locked")

    private static let unlock = Statement("SELECT RELEASE_LOCK(CONCAT(DATABASE(), '.migration'))")

    private static var table: String {
        """
        CREATE TABLE IF NOT EXISTS migration (
            version bigint NOT NULL PRIMARY KEY,
            applied_at datetime(3) NOT NULL,
            least bigint NOT NULL       -- the oldest program that works on these tables, by the newest version that it knows
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */
        """
    }

    // A program whose lock was taken over may already have inserted the same row.
    private static let record = Statement(
        """
        INSERT INTO migration (version, applied_at, least) VALUES (:version, :now, :least)
        /*M! ON DUPLICATE KEY UPDATE version = migration.version */ /*S! ON CONFLICT DO NOTHING */
        """)

    /// Refuses a store that is older than the first migration.
    private func refuseForerunner(_ version: Int64) throws(SessionFailure) {
        guard let first, version < first.version else { return }
        throw .refused(
            "the database has schema \(version), which cannot be brought up to date: "
                + "start anew with an empty database and `twoefay migrate`")
    }

    /// Returns the newest version in the database; nil before the first migration.
    private func present(_ session: any Session) throws(SessionFailure) -> (version: Int64, least: Int64)? {
        guard try session.run([Self.countOfTables()]).first?.first?.isOne("table_count") == true else { return nil }
        guard let row = try session.run([Self.newest()]).first?.first, let version = try? row.integer("version"),
            let least = try? row.integer("least")
        else { return nil }
        return (version, least)
    }

    private static let countOfTables = Statement(
        """
        SELECT COUNT(*) AS table_count FROM /*S! sqlite_master WHERE type = 'table' AND name = 'migration' */
        /*M! information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'migration' */
        """)

    private static let newest = Statement("SELECT version, least FROM migration ORDER BY version DESC LIMIT 1")
}

extension Row {
    fileprivate func isOne(_ column: SQLName) -> Bool { (try? integer(column)) == 1 }
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
