import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The plan of a migration, and what a run reports.
@Suite(.mayBlock) struct MigrationPlanTests {
    private static let onlyOnDisk: [Engine] = [.file, .mariadb]
    private static let now = Timestamp(seconds: 1_800_000_000)

    private static let second = Migration(
        version: 2, worksOn: 1, least: 1, summary: "the counters have a note",
        file: """
            ALTER TABLE counter ADD COLUMN /*M! IF NOT EXISTS */ note varchar(16);
            CREATE INDEX IF NOT EXISTS counter_note ON counter (note);
            """)
    private static let newer = TestSchema.all + [second]

    @Test func planOfAMissingFileCreatesNothing() throws {
        let directory = try TemporaryDirectory()
        let plan = try Store.migrationPlan(.sqlite(path: directory("none.db")))
        #expect(plan.present == nil && plan.target == Migration.all.known && plan.isCreation)
        #expect(plan.steps.map(\.statementCount) == [Dialect.sqlite.statements(of: SchemaText.sql).count])
        #expect(directory.names.isEmpty)
    }

    @Test(arguments: onlyOnDisk) func planNamesTheStepsAndChangesNothing(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate).close()
        let before = try database.structure().lines
        let plan = try Self.newer.plan(database.url)
        #expect(plan.present == 1 && plan.target == 2 && plan.changesVersion && !plan.isCreation)
        #expect(plan.steps.map(\.summary) == ["the counters have a note"])
        #expect(plan.steps.map(\.statementCount) == [2])
        #expect(try database.structure().lines == before)
        let store = try database.open(.require)
        defer { store.close() }
        #expect(store.schemaVersion == 1)
    }

    @Test(arguments: onlyOnDisk) func runDoesThePlanAndReportsEachStatement(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate).close()
        let plan = try Self.newer.plan(database.url)
        var events: [MigrationEvent] = []
        let done = try Self.newer.migrate(database.url, at: Self.now) { events.append($0) }
        #expect(done == plan)
        let step = try #require(plan.steps.first)
        let begun = step.statements.enumerated().map {
            MigrationEvent.begins(step, statement: $0.offset + 1, sql: $0.element)
        }
        #expect(events == begun + [.done(step)])
        // A further run has nothing to do.
        let again = try Self.newer.migrate(database.url, at: Self.now)
        #expect(again == MigrationPlan(present: 2, target: 2, steps: []))
        #expect(try Self.newer.plan(database.url) == again)
    }

    /// A program of the version before leaves newer tables as they are, and says which they have.
    @Test(arguments: onlyOnDisk) func olderProgramHasNothingToDo(_ engine: Engine) throws {
        let database = try engine.database()
        try database.open(.migrate, migrations: Self.newer).close()
        #expect(try TestSchema.all.plan(database.url) == MigrationPlan(present: 2, target: 2, steps: []))
    }

    /// A copy of a MariaDB store has no views, and the version of its tables.
    @Test(arguments: onlyOnDisk) func missingViewsAreCreated(_ engine: Engine) throws {
        let database = try engine.database(Migration.all)
        try database.open(.migrate).close()
        let complete = try database.structure().lines
        let session = try database.url.session(.migrating)
        try session.begin(.writing)
        for view in ["Phones", "Logins"] { try session.execute("DROP VIEW \(view)") }
        try session.commit()
        session.close()
        let plan = try Migration.all.plan(database.url)
        #expect(plan.steps.map(\.summary) == ["creates the missing views Phones, Logins"])
        #expect(!plan.changesVersion && !plan.isCreation)
        try database.open(.migrate).close()
        #expect(try database.structure().lines == complete)
    }

    /// The second program says that it waits, and then finds nothing to do.
    @Test func programThatWaitsForAnotherSaysSo() async throws {
        let database = try Engine.mariadb.database()
        try database.open(.migrate).close()
        let other = try database.url.session(.writing)
        try other.begin(.writing)
        let lock = Statement("SELECT GET_LOCK(CONCAT(DATABASE(), '.migration'), 0) AS is_locked")
        #expect(try other.run([lock()])[0].first?.integer("is_locked") == 1)
        let url = database.url
        let (waits, waiting) = AsyncStream<Void>.makeStream()
        async let done = blocking {
            try Self.newer.migrate(url, at: Self.now) { event in if event == .waits { waiting.yield() } }
        }
        for await _ in waits { break }
        other.close()
        #expect(try await done.steps.map(\.version) == [2])
    }
}
