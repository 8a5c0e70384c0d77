import World

/// The table `migration`, which has the versions of the tables.
///
/// While the tables of a new store are created, it has a row with the negative version. So a program
/// of another version finds that the tables are incomplete, and refuses them.
enum MigrationTable {
    static let name = "migration"

    /// The newest version in a database.
    struct Version {
        let version: Int64
        /// The oldest program that works on these tables, by the newest version that it knows.
        let least: Int64
    }

    static let creation = """
        CREATE TABLE IF NOT EXISTS migration (
            version bigint NOT NULL PRIMARY KEY,
            applied_at datetime(3) NOT NULL,
            least bigint NOT NULL       -- the oldest program that works on these tables, by the newest version that it knows
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */
        """

    /// Returns the newest version in the database; nil if it has none.
    static func newest(_ session: any Session) throws(SessionFailure) -> Version? {
        guard try names(session).contains(name),
            let row = try session.run([newest()]).first?.first, let version = try? row.integer("version"),
            let least = try? row.integer("least")
        else { return nil }
        return Version(version: version, least: least)
    }

    /// Returns the names of all tables and views of the database.
    static func names(_ session: any Session) throws(SessionFailure) -> Set<String> {
        let rows = try session.run([allNames()])[0]
        return Set(rows.compactMap { try? $0.text("name") })
    }

    private static let allNames = Statement(
        """
        SELECT /*S! name */ /*M! table_name AS name */
        FROM /*S! sqlite_master WHERE type IN ('table', 'view') */
        /*M! information_schema.tables WHERE table_schema = DATABASE() */
        """)

    private static let newest = Statement("SELECT version, least FROM migration ORDER BY version DESC LIMIT 1")

    /// Records a version.
    ///
    /// A program whose lock was taken over may already have inserted the same row.
    static func record(version: Int64, least: Int64, at now: Timestamp) -> BoundStatement {
        insert(version: .integer(version), now: .timestamp(now), least: .integer(least))
    }

    private static let insert = Statement(
        """
        INSERT INTO migration (version, applied_at, least) VALUES (:version, :now, :least)
        /*M! ON DUPLICATE KEY UPDATE version = migration.version */ /*S! ON CONFLICT DO NOTHING */
        """)

    /// Removes the mark of a creation, when its version is recorded.
    static let unmark = Statement("DELETE FROM migration WHERE version < 0")
}
