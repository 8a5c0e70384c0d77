import World

/// A numbered change of the tables. Every statement of it can be run again after a crash in the middle: MariaDB commits
/// each by itself.
struct Migration: Sendable {
    let version: Int64
    /// Statements as `schema.sql` writes them.
    let file: String

    /// All there are, oldest first, numbered from 1 without a gap.
    static let all = [Migration(version: 1, file: SchemaText.sql)]
}

extension [Migration] {
    private static var table: String {
        """
        CREATE TABLE IF NOT EXISTS migration (
            version bigint NOT NULL PRIMARY KEY,
            applied_at datetime(3) NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */
        """
    }

    private static let isThere = Statement(
        """
        SELECT COUNT(*) FROM /*S! sqlite_master WHERE type = 'table' AND name = 'migration' */
        /*M! information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'migration' */
        """)
    private static let newest = Statement("SELECT MAX(version) FROM migration")
    private static let record = Statement("INSERT INTO migration (version, applied_at) VALUES (?, ?)")
    // Two programs that migrate at once: the second one waits, and then finds nothing to do. SQLite's transaction does
    // the same by itself.
    private static let lock = Statement("SELECT GET_LOCK(CONCAT(DATABASE(), '.migration'), 600)")
    private static let unlock = Statement("SELECT RELEASE_LOCK(CONCAT(DATABASE(), '.migration'))")

    private var known: Int64 { last?.version ?? 0 }

    /// The version of the tables; a failure that says what to do if this program cannot work with them.
    func check(_ session: any Session) throws(SessionFailure) -> Int64 {
        try session.begin(.reading)
        let found: Int64?
        do throws(SessionFailure) {
            found = try version(session)
            try session.commit()
        } catch {
            session.rollBack()
            throw error
        }
        guard let found else { throw .refused("the database has no tables yet: run `twoefay migrate`") }
        guard found >= known else {
            throw .refused("the database has schema \(found) and this program needs \(known): run `twoefay migrate`")
        }
        guard found == known else {
            throw .refused(
                "the database has schema \(found) and this program knows no more than \(known): "
                    + "install the version that made it, or a later one")
        }
        return found
    }

    /// Brings the tables up to date. Does nothing if they are, and nothing to tables that are newer.
    func migrate(_ session: any Session, _ dialect: Dialect, now: Timestamp) throws(SessionFailure) {
        try session.begin(.writing)
        do throws(SessionFailure) {
            if dialect == .mariadb, try session.run([Step(Self.lock)]).first?.first?.isOne != true {
                throw .conflict("another program is migrating this database")
            }
            try session.execute(dialect.resolve(Self.table))
            let present = try version(session) ?? 0
            for migration in self where migration.version > present {
                for statement in dialect.statements(of: migration.file) {
                    do throws(SessionFailure) {
                        try session.execute(statement)
                    } catch {
                        throw .refused("schema \(migration.version): \(error.message) in: \(statement.prefix(200))")
                    }
                }
                _ = try session.run([Step(Self.record, .integer(migration.version), .moment(now))])
            }
            try session.commit()
        } catch {
            session.rollBack()
            throw error
        }
        // Only now: who gets the lock must find the version. If it cannot be said any more, the connection's end says it.
        if dialect == .mariadb { _ = try? session.run([Step(Self.unlock)]) }
    }

    /// Nil before the first migration.
    private func version(_ session: any Session) throws(SessionFailure) -> Int64? {
        guard try session.run([Step(Self.isThere)]).first?.first?.isOne == true else { return nil }
        let rows = try session.run([Step(Self.newest)])
        guard let row = rows.first?.first, case .integer(let version)? = try? row.value(0) else { return nil }
        return version
    }
}

extension Row {
    fileprivate var isOne: Bool { (try? value(0)) == .integer(1) }
}
