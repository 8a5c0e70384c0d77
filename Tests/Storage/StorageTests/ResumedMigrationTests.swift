import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// A migration whose program dies after each of its statements. The next run completes it, and the
/// tables are those of an undisturbed run.
@Suite(.mayBlock) struct ResumedMigrationTests {
    private static let onlyOnDisk: [Engine] = [.file, .mariadb]
    private static let now = Timestamp(seconds: 1_800_000_000)

    /// Changes of every kind: a table, an index, a column, its values, and a view in place of another.
    private static let second = Migration(
        version: 2, worksOn: 1, least: 1,
        file: """
            CREATE TABLE IF NOT EXISTS later (id bigint NOT NULL PRIMARY KEY, n bigint NOT NULL)
                /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
            CREATE INDEX IF NOT EXISTS later_n ON later (n);
            ALTER TABLE counter ADD COLUMN /*M! IF NOT EXISTS */ note varchar(16) DEFAULT 'new';
            UPDATE counter SET note = 'old' WHERE note = 'new' AND n > 0;
            /*M! CREATE OR REPLACE VIEW Counters AS */ /*S! DROP VIEW IF EXISTS Counters; CREATE VIEW Counters AS */
            SELECT id, n FROM counter;
            """)
    private static let third = Migration(
        version: 3, worksOn: 2, least: 2,
        file: """
            /*M! CREATE OR REPLACE VIEW Counters AS */ /*S! DROP VIEW IF EXISTS Counters; CREATE VIEW Counters AS */
            SELECT id, n, note FROM counter;
            DROP TABLE IF EXISTS kept;
            """)
    private static let all = TestSchema.all + [second, third]

    private static let counters = Statement("SELECT id, n, note FROM Counters ORDER BY id")

    private func database(_ engine: Engine) async throws -> TestDatabase {
        let database = try engine.database()
        let store = try database.open(.migrate)
        defer { store.close() }
        for (id, n) in [(1, 0), (2, 7)] { _ = try await store.run(TestScript.counter(Int64(id), Int64(n))) }
        return database
    }

    /// Migrates over a session that dies after so many statements. Returns whether it died.
    private func migrate(_ database: TestDatabase, _ migrations: [Migration], dyingAfter count: Int) throws -> Bool {
        let session = DyingSession(try database.url.session(.migrating), after: count)
        defer { session.close() }
        do {
            try migrations.migrate(session, database.url.dialect, now: Self.now)
        } catch let failure as SessionFailure {
            guard session.isDead else { throw failure }
        }
        return session.isDead
    }

    @Test(arguments: onlyOnDisk) func programThatDiesAfterAnyStatementIsResumed(_ engine: Engine) async throws {
        let undisturbed = try await database(engine)
        try undisturbed.open(.migrate, migrations: Self.all).close()
        let expected = try undisturbed.structure().lines

        var deaths = 0
        var hasDied = true
        while hasDied {
            let database = try await database(engine)
            hasDied = try migrate(database, Self.all, dyingAfter: deaths)
            let store = try database.open(.migrate, migrations: Self.all)
            defer { store.close() }
            #expect(store.schemaVersion == 3, "\(deaths)")
            #expect(try database.structure().lines == expected, "\(deaths)")
            let rows = try store.runBlocking(Script("test", reads: [Self.counters()]))[0]
            #expect(try rows.map { try $0.text("note") } == ["new", "old"], "\(deaths)")
            deaths += 1
        }
        // The last round had no death, and the one before it died between the last statement and its record.
        let statements = (engine == .file ? Dialect.sqlite : .mariadb)
        let count = [Self.second, Self.third].reduce(0) { $0 + statements.statements(of: $1.file).count }
        #expect(deaths - 2 == count)
    }

    /// The same of the product's own migrations, from the tables of each earlier package.
    @Test(arguments: onlyOnDisk, FormerSchema.versions)
    func productsMigrationIsResumed(_ engine: Engine, _ version: Int64) throws {
        let new = try engine.database(Migration.all)
        try new.open(.migrate).close()
        let expected = try new.structure().lines
        var deaths = 0
        var hasDied = true
        while hasDied {
            let database = try engine.database(Migration.all)
            try FormerSchema.create(version, at: database.url)
            hasDied = try migrate(database, Migration.all, dyingAfter: deaths)
            let store = try database.open(.migrate)
            defer { store.close() }
            #expect(store.schemaVersion == Migration.all.known)
            #expect(try database.structure().lines == expected, "\(deaths)")
            deaths += 1
        }
        #expect(deaths > 2)
    }

    /// Each round gets one statement further, and the next one begins with what it left.
    @Test(arguments: onlyOnDisk) func creationIsResumed(_ engine: Engine) throws {
        let database = try engine.database(Migration.all)
        var deaths = 0
        while try migrate(database, Migration.all, dyingAfter: deaths) {
            #expect(throws: StoreFailure.self) { try database.open(.require) }
            deaths += 1
        }
        // The statements, the table of versions before them, and the record after them.
        #expect(deaths == database.url.dialect.statements(of: SchemaText.sql).count + 2)
        let store = try database.open(.require)
        defer { store.close() }
        #expect(store.schemaVersion == Migration.all.known)
        #expect(try store.runBlocking(Script("test", reads: [Self.versions()]))[0].count == 1)
    }

    private static let versions = Statement("SELECT version FROM migration")

    /// Programs of other versions must not complete what one of them began: they have other tables.
    @Test func creationByAnotherVersionIsRefused() throws {
        let database = try Engine.mariadb.database(Migration.all)
        #expect(try migrate(database, [Migration(version: 9, file: SchemaText.sql)], dyingAfter: 5))
        for schema in [SchemaRequirement.require, .migrate] {
            try database.expectMismatch(
                "the tables of the database are incomplete: their creation with schema 9 was interrupted",
                "Finish with the version that began, or drop the database", schema)
        }
    }

    /// Programs of schema 2 did not mark what they began.
    @Test func unmarkedTablesAreRefused() throws {
        let database = try Engine.mariadb.database(Migration.all)
        let session = try database.url.session(.migrating)
        defer { session.close() }
        try session.begin(.writing)
        try session.execute(try #require(Dialect.mariadb.statements(of: try FormerSchema.text(2)).first))
        try database.expectMismatch(
            "the tables of the database are incomplete: their creation by another program was interrupted",
            "drop the database, create it anew and run: twoefay --config FILE migrate", .migrate)
    }
}

extension TestDatabase {
    /// Expects that the store is not opened, with this reason and a remedy that has these words.
    func expectMismatch(
        _ reason: String, _ remedy: String, _ schema: SchemaRequirement, migrations: [Migration]? = nil,
        at place: SourceLocation = #_sourceLocation
    ) throws {
        let failure = #expect(throws: StoreFailure.self, sourceLocation: place) {
            try open(schema, migrations: migrations)
        }
        guard case .mismatched(let found, let next)? = failure else {
            Issue.record("\(String(describing: failure)) is no mismatch", sourceLocation: place)
            return
        }
        #expect(found == "\(url): \(reason)", sourceLocation: place)
        #expect(next.contains(remedy), sourceLocation: place)
    }
}
