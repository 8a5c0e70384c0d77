import Relay
import TestSupport
import Testing
import World

@testable import Storage

@Suite(.mayBlock) struct MigrationTests {
    private static let second = Migration(
        version: 2,
        file: """
            CREATE TABLE IF NOT EXISTS later (id bigint NOT NULL PRIMARY KEY, n bigint NOT NULL)
                /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
            CREATE INDEX IF NOT EXISTS later_n ON later (n);
            """)
    private static let newer = TestSchema.all + [second]
    private static let onlyOnDisk: [Engine] = [.file, .mariadb]

    @Test(arguments: onlyOnDisk)
    func emptyDatabaseIsRefusedWithAdvice(_ engine: Engine) throws {
        let database = try engine.database()
        if engine == .file { try Self.touch(database.url) }
        try database.expectMismatch(
            "the database has no tables yet", "Create them: twoefay --config FILE migrate", .require)
    }

    @Test func missingFileIsNotCreated() throws {
        let directory = try TemporaryDirectory()
        let database = TestDatabase(url: .sqlite(path: directory("none.db")), migrations: TestSchema.all)
        #expect(throws: StoreFailure.self) { try database.open(.require) }
        #expect(directory.names.isEmpty)
    }

    @Test func newDatabaseFileIsPrivate() throws {
        let directory = try TemporaryDirectory()
        let store = try TestDatabase(url: .sqlite(path: directory("new.db")), migrations: TestSchema.all).open()
        defer { store.close() }
        for name in directory.names { #expect(TemporaryDirectory.mode(of: directory(name)) == 0o600, "\(name)") }
    }

    /// The file of a closed store. SQLite's log has been copied into it, so the file can be copied, moved and
    /// removed.
    @Test func closedStoreLeavesOneFile() async throws {
        let directory = try TemporaryDirectory()
        let store = try TestDatabase(url: .sqlite(path: directory("one.db")), migrations: TestSchema.all).open()
        _ = try await store.run(TestScript.counter(1))
        _ = try await store.run(TestScript.value(of: 1))
        #expect(directory.names == ["one.db", "one.db-shm", "one.db-wal"])
        store.close()
        #expect(directory.names == ["one.db"])
    }

    @Test(arguments: onlyOnDisk)
    func secondMigrationChangesNothing(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate).close()
        try database.open(.migrate).close()
        let store = try database.open(.require)
        defer { store.close() }
        #expect(store.schemaVersion == 1)
        #expect(try store.runBlocking(Script("test", reads: [Self.versions()]))[0].count == 1)
    }

    private static let versions = Statement("SELECT version, applied_at FROM migration")

    @Test(arguments: onlyOnDisk)
    func olderSchemaIsRefusedUntilMigrated(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate).close()
        try database.expectMismatch(
            "the database has schema 1 and this program needs 2 or later",
            "update the tables: twoefay --config FILE migrate.", .require, migrations: Self.newer)
        let store = try database.open(.migrate, migrations: Self.newer)
        defer { store.close() }
        #expect(store.schemaVersion == 2)
    }

    @Test(arguments: onlyOnDisk, [SchemaRequirement.require, .migrate])
    func newerSchemaIsRefused(_ engine: Engine, _ schema: SchemaRequirement) throws {
        let database = try engine.database()
        try database.open(.migrate, migrations: Self.newer).close()
        try database.expectMismatch(
            "the database has schema 2, for programs that know 2 or later, and this program knows no more than 1",
            "apt-get install twoefay), and start it again: systemctl restart twoefayd", schema)
    }

    /// The product's first schema is version 2. Earlier stores have secrets that are derived from ids, and there is
    /// no migration from them.
    @Test(arguments: onlyOnDisk, [SchemaRequirement.require, .migrate])
    func storeWithoutASchemaVersionIsRefused(_ engine: Engine, _ schema: SchemaRequirement) throws {
        #expect(Migration.all.first?.version == 2)
        let database = try engine.database()
        try database.open(.migrate).close()
        try database.expectMismatch(
            "the database has schema 1, which cannot be brought up to date",
            "Start anew with an empty database: twoefay --config FILE migrate", schema, migrations: Migration.all)
        // The store is unchanged.
        let store = try database.open(.require)
        defer { store.close() }
        #expect(store.schemaVersion == 1)
        let tables = Statement(
            """
            SELECT COUNT(*) AS count FROM /*S! sqlite_master WHERE name = 'website' */
            /*M! information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'website' */
            """)
        #expect(try store.runBlocking(Script("test", reads: [tables()])).row(0).integer("count") == 0)
    }

    @Test(arguments: onlyOnDisk)
    func concurrentMigrationsAreSafe(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let url = database.url
        try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let store = try TestDatabase(url: url, migrations: Migration.all).open(.migrate)
                    defer { store.close() }
                    return store.schemaVersion
                }
            }
            for try await version in group { #expect(version == Migration.all.last?.version) }
        }
        withExtendedLifetime(database) {}
    }

    /// The next holder of the lock must find the version that was written.
    @Test func migrationLockIsHeldUntilTheVersionIsWritten() throws {
        let database = try Engine.mariadb.database()
        let (migrating, other) = (try database.url.session(.migrating), try database.url.session(.reading))
        defer {
            migrating.close()
            other.close()
        }
        let isFree = Statement("SELECT IS_FREE_LOCK(CONCAT(DATABASE(), '.migration')) AS is_free")
        func free() -> Int64? { try? other.run([isFree()]).row(0).integer("is_free") }
        var atCommit: Int64?
        let watched = ObservedSession(migrating, beforeCommit: { atCommit = free() })
        try TestSchema.all.migrate(watched, .mariadb, now: Timestamp(seconds: 1_800_000_000))
        #expect(atCommit == 0)
        #expect(free() == 1)
    }

    @Test(arguments: onlyOnDisk)
    func failedMigrationStatementIsNamed(_ engine: Engine) throws {
        let broken = Migration(version: 1, file: "CREATE TABLE IF NOT EXISTS fine (id bigint); CREATE NONSENSE;")
        let database = try engine.database([broken])
        let failure = #expect(throws: StoreFailure.self) { try database.open(.migrate) }
        guard case .internal(let message)? = failure else {
            Issue.record("\(String(describing: failure)) is not .internal")
            return
        }
        #expect(message.contains("schema 1: "))
        #expect(message.contains("CREATE NONSENSE"))
    }

    /// Creates an empty file, which SQLite treats as an empty database.
    private static func touch(_ url: StorageURL) throws {
        guard case .sqlite(let path) = url else { return }
        try write("", to: path)
    }
}
