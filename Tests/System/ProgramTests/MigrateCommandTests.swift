import JSON
import Storage
import TestSupport
import Testing

/// `twoefay migrate` on the tables of the last package, and the programs on tables that do not fit.
@Suite("twoefay migrate", .timeLimit(.minutes(15)), .mayBlock) struct MigrateCommandTests {
    private static let kinds: [StoreKind] = [.file, .mariadb]
    private static let former = FormerSchema.last
    private static let known = SchemaState.known

    private func tool(_ installed: Installed, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(try BuiltProgram.twoefay.path, ["--config", installed.settings] + arguments)
    }

    private func notes(_ relay: RunningRelay) async throws -> [String] {
        let found = try await BuiltProgram.twoefay(
            "--config", relay.settings, "audit", "search", "--event", "schema.migrated", "--json")
        return try found.json["rows"]?.array?.compactMap { $0.object?["note"]?.string } ?? []
    }

    @Test(arguments: kinds) func planIsShownAndThenDone(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, tables: Self.former)
        let arguments = ["--config", fixture.relay.settings, "migrate"]
        let plan = try await Child.run(try BuiltProgram.twoefay.path, arguments + ["--plan"])
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(
            plan.output.contains("have schema \(Self.former), and this program knows \(Self.known). The plan:"),
            "\(plan.output)")
        #expect(plan.output.contains("\n  schema \(Self.known), "))
        #expect(plan.output.contains("Nothing was changed. When all relays run the new version: twoefay --config"))
        let planned = try await fixture.json("migrate", "--plan")
        #expect(planned["schema_version"] == .integer(Self.former) && planned["to"] == .integer(Self.known))
        #expect(planned["changed"] == false && planned["steps"]?.array?.count == Int(Self.known - Self.former))
        #expect(try await notes(fixture.relay) == [])

        let done = try await Child.run(try BuiltProgram.twoefay.path, arguments)
        #expect(done.status == 0 && done.errors == "", "\(done.errors)")
        #expect(done.output.contains("are brought from schema \(Self.former) to \(Self.known)."), "\(done.output)")
        #expect(done.output.contains("the view Phones also shows"))
        #expect(done.output.contains("so that they use the new tables: systemctl restart twoefayd"))
        #expect(try await notes(fixture.relay) == ["schema \(Self.former) to \(Self.known)"])
        #expect(try fixture.relay.count("SELECT count(*) FROM Phones WHERE pin = 'none'") == 0)

        // The relay goes on, and a further run changes nothing.
        _ = try await fixture.bind(try await fixture.registered("anna"))
        #expect(try fixture.relay.count("SELECT count(*) FROM Phones WHERE pin = 'none'") == 1)
        let again = try await fixture.json("migrate")
        #expect(again["schema_version"] == .integer(Self.known) && again["from"] == .integer(Self.known))
        #expect(again["changed"] == false && again["steps"] == [] && again["next"] == "There is nothing to do.")
        #expect(try await notes(fixture.relay).contains("schema \(Self.known), nothing to do"))
    }

    @Test func emptyStoreIsPlannedAndCreated() async throws {
        let installed = try await Installed()
        _ = try await Child.run("sh", ["-c", "rm twoefay.db*"], in: installed.directory("relay"))
        let plan = try await tool(installed, "migrate", "--plan")
        #expect(plan.status == 0 && plan.output.contains("has no tables yet. The plan:\n  schema \(Self.known), "))
        #expect(TemporaryDirectory.names(in: installed.directory("relay")).allSatisfy { !$0.contains(".db") })
        let done = try await tool(installed, "migrate", "--json").json
        #expect(done["from"] == .null && done["schema_version"] == .integer(Self.known) && done["changed"] == true)
    }

    /// The relays' account has the rights to rows alone. It is refused before anything is changed.
    @Test(arguments: [former, nil]) func accountWithRightsToRowsAloneIsRefused(tables: Int64?) async throws {
        let fixture = try await Fixture(.mariadb)
        await fixture.relay.stop()
        guard case .mariadb(let place) = fixture.relay.storage else {
            Issue.record("\(fixture.relay.storage)")
            return
        }
        let database = place.database
        if let tables {
            try await RunningRelay.replaceTables(of: fixture.relay.storage, by: tables)
        } else {
            try await blocking {
                try MariaDBServer.shared().sql("DROP DATABASE \(database); CREATE DATABASE \(database)")
            }
        }
        let account = "rows_of_\(database)_\(tables ?? 0)"
        let url = try await blocking {
            let server = try MariaDBServer.shared()
            try server.sql(
                "CREATE USER \(account)@127.0.0.1; "
                    + "GRANT SELECT, INSERT, UPDATE, DELETE ON \(database).* TO \(account)@127.0.0.1")
            return server.url(database, as: account)
        }
        func structure() async throws -> String {
            let dump = [
                "--no-defaults", "--user=root", "--socket=\(try await blocking { try MariaDBServer.shared().socket })",
                "--skip-comments", "--skip-dump-date", database,
            ]
            let dumped = try await Child.run("mariadb-dump", dump)
            try #require(dumped.status == 0, "\(dumped.errors)")
            return dumped.output
        }
        let before = try await structure()
        let ended = try await fixture.tool(["migrate", "--storage", url])
        #expect(ended.status == 1, "\(ended.output)")
        #expect(ended.errors.contains("the account may not change tables"), "\(ended.errors)")
        #expect(ended.errors.contains("CREATE, ALTER, DROP, INDEX and CREATE VIEW"), "\(ended.errors)")
        #expect(ended.errors.contains("GRANT ALL ON \(database).*"), "\(ended.errors)")
        #expect(ended.errors.contains("--storage") && ended.errors.contains("docs/operators/store.md"))
        #expect(try await structure() == before)
        #expect(before.contains("CREATE TABLE") == (tables != nil))
        // The same tables, and an account that may.
        #expect(try await fixture.tool(["migrate"]).status == 0)
    }

    // MARK: An update that is not finished

    @Test func everyProgramNamesAnUnfinishedUpdate() async throws {
        let fixture = try await Fixture(.file, tables: Self.former)
        let next = "When all relays run the new version: twoefay --config FILE migrate"
        try await fixture.relay.logged("event=schema.older version=\(Self.former) limit=\(Self.known)")
        let status = try await fixture.tool(["status"])
        #expect(status.status == 0)
        #expect(status.output.contains("Warning: the tables have schema \(Self.former) and this program knows"))
        #expect(status.output.contains(next), "\(status.output)")
        let schema = try await fixture.json("status")["schema"]?.object
        #expect(schema?["version"] == .integer(Self.former) && schema?["known"] == .integer(Self.known))
        #expect(schema?["is_unfinished"] == true)
        let checked = try await BuiltProgram.twoefayd("--config", fixture.relay.settings, "--check")
        #expect(checked.status == 0 && checked.output.contains(next), "\(checked.output)\(checked.errors)")
        let doctor = try await fixture.tool(["doctor", "--offline"])
        #expect(doctor.output.contains("warning  store.schema"), "\(doctor.output)")
        #expect(doctor.output.contains("twoefay --config FILE migrate"))

        _ = try await fixture.json("migrate")
        let after = try await fixture.json("status")["schema"]?.object
        #expect(after?["version"] == .integer(Self.known) && after?["is_unfinished"] == false)
        #expect(try await !BuiltProgram.twoefayd("--config", fixture.relay.settings, "--check").output.contains(next))
        #expect(try await fixture.tool(["doctor", "--offline"]).output.contains("ok       store.schema"))
    }

    @Test func everyProgramNamesNewerTables() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        try Fixture.execute("UPDATE migration SET version = \(Self.known + 1), least = \(Self.known)", in: installed)
        let warning = "Warning: the tables have schema \(Self.known + 1) and this program knows \(Self.known)"
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        for output in [try await tool(installed, "status").output, checked.output] {
            #expect(output.contains(warning) && output.contains("update this program, too"), "\(output)")
        }
    }

    // MARK: Tables that do not fit

    /// The answers of the programs to tables of a version, by the oldest program that works with them.
    struct Misfit: Sendable, CustomTestStringConvertible {
        let version: Int64
        let least: Int64
        let reason: String
        let remedy: String

        var testDescription: String { "schema \(version)" }
    }

    private static let misfits = [
        Misfit(
            version: known + 2, least: known + 1,
            reason: "the database has schema \(known + 2), for programs that know \(known + 1) or later, and this "
                + "program knows no more than \(known)",
            remedy: "Install the version of Twoefay that made the tables, or a later one (Debian: apt-get install "
                + "twoefay), and start it again: systemctl restart twoefayd"),
        Misfit(
            version: 1, least: 1, reason: "the database has schema 1, which cannot be brought up to date",
            remedy: "Start anew with an empty database: twoefay --config FILE migrate"),
        Misfit(
            version: -known, least: known,
            reason: "the tables of the database are incomplete: their creation with schema \(known) was interrupted",
            remedy: "Finish it: twoefay --config FILE migrate"),
    ]

    @Test(arguments: misfits) func programsRefuseTablesThatDoNotFit(_ misfit: Misfit) async throws {
        // The relay gets as far as its store, so its address must be free.
        let port = try FreePort()
        let installed = try await Installed("--listen", "127.0.0.1:\(port.port)", "--host", "localhost")
        try Fixture.execute(
            "UPDATE migration SET version = \(misfit.version), least = \(misfit.least)", in: installed)
        var runs = [
            try await BuiltProgram.twoefayd("--config", installed.settings),
            try await BuiltProgram.twoefayd("--config", installed.settings, "--check"),
            try await tool(installed, "website", "list"),
            try await tool(installed, "backup", installed.directory("copy")),
        ]
        if misfit.version != -Self.known {
            runs.append(try await tool(installed, "migrate", "--plan"))
            runs.append(try await tool(installed, "migrate"))
        }
        for ended in runs {
            #expect(ended.status == 5, "\(ended.output)")
            #expect(ended.errors.contains("the store cannot be used: sqlite:"), "\(ended.errors)")
            #expect(ended.errors.contains(": \(misfit.reason)\n\(misfit.remedy)\n"), "\(ended.errors)")
        }
        let json = try await tool(installed, "website", "list", "--json").json
        #expect(json["error"]?.object?["next"] == .string(misfit.remedy))
    }

    @Test func interruptedCreationIsFinished() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        try Fixture.execute("UPDATE migration SET version = \(-Self.known)", in: installed)
        let plan = try await tool(installed, "migrate", "--plan")
        #expect(plan.output.contains("continues to create all tables and views"), "\(plan.output)\(plan.errors)")
        #expect(try await tool(installed, "migrate").status == 0)
        #expect(try await tool(installed, "website", "list").status == 0)
    }

    // MARK: Copies of the last package

    /// A copy with the tables of the last package is brought up to date by the restore.
    @Test(arguments: kinds) func copyOfTheLastPackageIsRestored(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, tables: Self.former)
        let phone = try await fixture.bind(try await fixture.registered("anna"))
        let file = fixture.relay.directory("copy")
        #expect(try await fixture.json("backup", file)["schema_version"] == .integer(Self.former))
        await fixture.relay.stop()
        var store = fixture.relay.storage
        if case .mariadb = store {
            let url = try await blocking {
                let server = try MariaDBServer.shared()
                return server.url(try server.freshDatabase())
            }
            try fixture.relay.change { try $0.set("storage", to: url) }
            store = try StorageURL(url)
        }
        let restored = try await fixture.tool(["restore", file, "--yes"])
        #expect(restored.status == 0, "\(restored.errors)")
        let place = store
        let newest = "SELECT max(version) AS value FROM migration"
        #expect(try await blocking { try RunningRelay.count(newest, at: place) } == Self.known)
        // The views exist, and have what this version added.
        let phones = "SELECT count(*) FROM Phones WHERE pin = 'none' AND verify_since IS NOT NULL"
        #expect(try await blocking { try RunningRelay.count(phones, at: place) } == 1)
        for command in [["rows", "verify"], ["audit", "verify"]] {
            let verified = try await fixture.tool(command)
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
        }
        try await fixture.relay.restart()
        #expect(try await phone.isKnown())
        #expect(try await fixture.result(try await fixture.login("anna"))["login"] == "wait")
    }

    /// A copy with tables that this program does not know leaves the store as it was.
    @Test func copyOfALaterVersionIsRefused() async throws {
        let fixture = try await Fixture(.file)
        await fixture.relay.stop()
        let file = fixture.relay.directory("copy")
        _ = try await fixture.json("backup", file)
        let (version, least) = (Self.known + 2, Self.known + 1)
        try await blocking {
            try RunningRelay.execute(
                "UPDATE migration SET version = \(version), least = \(least)", at: .sqlite(path: file),
                settings: fixture.relay.settings)
        }
        let refused = try await fixture.tool(["restore", file, "--yes"])
        #expect(refused.status == 5, "\(refused.output)")
        #expect(refused.errors.contains("the database has schema \(version), for programs that know \(least) or later"))
        #expect(refused.errors.contains("Install the version of Twoefay that made the tables"), "\(refused.errors)")
        try await fixture.relay.restart()
        #expect(try await fixture.tool(["website", "list"]).output.contains("shop"))
    }
}
