import Log
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// Programs of two versions on one database, before and after the migration of its tables.
@Suite(.mayBlock) struct RollingUpgradeTests {
    private static let onlyOnDisk: [Engine] = [.file, .mariadb]

    /// Adds a table, and a column to an existing table. Programs of version 1 know neither.
    private static let second = Migration(
        version: 2, worksOn: 1, least: 1,
        file: """
            CREATE TABLE IF NOT EXISTS later (id bigint NOT NULL PRIMARY KEY)
                /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
            ALTER TABLE counter ADD COLUMN /*M! IF NOT EXISTS */ note varchar(16) DEFAULT 'new';
            """)
    /// Removes a table that only programs of version 1 used.
    private static let third = Migration(version: 3, worksOn: 2, least: 2, file: "DROP TABLE IF EXISTS kept;")
    private static let programOfTwo = TestSchema.all + [second]
    private static let programOfThree = programOfTwo + [third]

    private static let note = Statement("SELECT note FROM counter WHERE id = :id")

    private static func raised(_ store: Store) async throws -> Int64 {
        try await store.run(TestScript.raise(1))[1].first?.integer("n") ?? -1
    }

    /// The order of an upgrade: first the programs, one relay after the other, then the tables. Every relay keeps
    /// working.
    @Test(arguments: onlyOnDisk)
    func adjacentVersionsWorkOnEitherSchema(_ engine: Engine) async throws {
        let database = try engine.database()
        let older = try database.open(.migrate)
        defer { older.close() }
        _ = try await older.run(TestScript.counter(1))
        #expect(try await Self.raised(older) == 1)

        let newer = try database.open(.require, migrations: Self.programOfTwo)
        defer { newer.close() }
        #expect(newer.schemaVersion == 1)
        #expect(database.sink.lines.count { ObservedSink.isOf("schema.older", $0) } == 1)
        #expect(try await Self.raised(newer) == 2)
        #expect(try await Self.raised(older) == 3)

        let migrated = try database.open(.migrate, migrations: Self.programOfTwo)
        defer { migrated.close() }
        #expect(migrated.schemaVersion == 2)
        // All running programs continue, and a program of the previous version can still be started.
        #expect(try await Self.raised(older) == 4)
        #expect(try await Self.raised(newer) == 5)
        let restarted = try database.open(.require)
        defer { restarted.close() }
        #expect(restarted.schemaVersion == 2)
        #expect(database.sink.lines.count { ObservedSink.isOf("schema.newer", $0) } == 1)
        #expect(try await Self.raised(restarted) == 6)
        #expect(try await restarted.run(TestScript.counter(2)).isEmpty)
        let notes = Script("test.note", reads: [1, 2].map { Self.note(id: .integer($0)) })
        #expect(try await migrated.run(notes).map { try $0.first?.text("note") } == ["new", "new"])
    }

    /// `migrate` of an older program changes nothing, and reports no error.
    @Test(arguments: onlyOnDisk)
    func olderProgramLeavesANewerSchemaUnchanged(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate, migrations: Self.programOfTwo).close()
        let store = try database.open(.migrate)
        defer { store.close() }
        #expect(store.schemaVersion == 2)
    }

    @Test(arguments: onlyOnDisk)
    func versionsTwoApartAreRefused(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate).close()
        try database.expectMismatch(
            "the database has schema 1 and this program needs 2 or later", "install the versions between in turn",
            .require, migrations: Self.programOfThree)
        try database.open(.migrate, migrations: Self.programOfThree).close()
        try database.expectMismatch(
            "the database has schema 3, for programs that know 2 or later, and this program knows no more than 1",
            "Install the version of Twoefay that made the tables, or a later one", .require)
        try database.open(.require, migrations: Self.programOfTwo).close()
    }

    /// The rule for future versions: relays can be updated one after the other only if each version works with the
    /// version before it.
    @Test func everyVersionWorksWithItsPredecessor() {
        let first = Migration.all.first?.version ?? 0
        #expect(Migration.all.map(\.version) == Migration.all.indices.map { Int64($0) + first })
        for migration in Migration.all.dropFirst() {
            #expect(migration.worksOn < migration.version, "schema \(migration.version)")
            #expect(migration.least < migration.version, "schema \(migration.version)")
        }
    }

    /// At two nodes of a cluster no lock separates two programs. The later commit gets a conflict.
    @Test func laterConcurrentMigrationFindsItDone() throws {
        let database = try Engine.mariadb.database()
        let (later, first) = (try database.url.session(.migrating), try database.url.session(.migrating))
        defer {
            later.close()
            first.close()
        }
        var commits = 0
        let session = MeddledSession(
            later,
            beforeCommit: { () throws(SessionFailure) in
                commits += 1
                guard commits == 1 else { return }
                // A node does the same with a transaction that was not certified.
                later.rollBack()
                try Self.record(first)
                throw .conflict("another node was first")
            })
        try TestSchema.all.migrate(session, .mariadb, now: Timestamp(seconds: 1_800_000_000))
        #expect(commits == 2)
        let store = try database.open(.require)
        defer { store.close() }
        #expect(store.schemaVersion == 1)
    }

    /// The other program's row arrives before this program's statement. No duplicate key is reported.
    @Test func existingVersionIsNoError() throws {
        let database = try Engine.mariadb.database()
        let (later, first) = (try database.url.session(.migrating), try database.url.session(.migrating))
        defer {
            later.close()
            first.close()
        }
        var isWritten = false
        let session = MeddledSession(
            later,
            beforeExecute: { sql throws(SessionFailure) in
                guard sql.contains("kept_name") else { return }
                isWritten = true
                try Self.record(first)
            })
        try TestSchema.all.migrate(session, .mariadb, now: Timestamp(seconds: 1_800_000_000))
        #expect(isWritten)
        let store = try database.open(.require)
        defer { store.close() }
        #expect(try store.runBlocking(Script("test", reads: [Self.versions()])).row(0).integer("count") == 1)
    }

    private static let versions = Statement("SELECT COUNT(*) AS count FROM migration")

    private static func record(_ session: any Session) throws(SessionFailure) {
        try session.execute("INSERT INTO migration (version, applied_at, least) VALUES (1, '2026-11-22', 1)")
        try session.execute("COMMIT")
    }
}

/// A session that lets other sessions act at two points.
private final class MeddledSession: Session {
    private let inner: any Session
    private let beforeExecute: (String) throws(SessionFailure) -> Void
    private let beforeCommit: () throws(SessionFailure) -> Void

    init(
        _ inner: any Session, beforeExecute: @escaping (String) throws(SessionFailure) -> Void = { _ in },
        beforeCommit: @escaping () throws(SessionFailure) -> Void = {}
    ) {
        self.inner = inner
        self.beforeExecute = beforeExecute
        self.beforeCommit = beforeCommit
    }

    func begin(_ purpose: Purpose) throws(SessionFailure) { try inner.begin(purpose) }
    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] { try inner.run(steps) }
    func rollBack() { inner.rollBack() }
    func close() { inner.close() }
    var changes: Int64 { inner.changes }
    var place: SessionHost? { inner.place }

    func execute(_ sql: String) throws(SessionFailure) {
        try beforeExecute(sql)
        try inner.execute(sql)
    }

    func commit() throws(SessionFailure) {
        try beforeCommit()
        try inner.commit()
    }
}
