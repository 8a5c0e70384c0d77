import JSON
import TestSupport
import Testing

@Suite("twoefay rekey", .timeLimit(.minutes(15)), .mayBlock) struct RekeyTests {
    private func rekey(_ installed: Installed, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "rekey", "--json"] + arguments)
    }

    private func keys(_ ended: Child.Ended) throws -> [(id: String, role: String)] {
        let keys = try #require(try ended.json["keys"]?.array).compactMap(\.object)
        return try keys.map { (try #require($0["id"]?.string), try #require($0["role"]?.string)) }
    }

    @Test func rekeyStatusCountsRowsPerKey() async throws {
        let installed = try await Installed()
        let made = try keys(try await rekey(installed))
        #expect(made.map(\.role) == ["next", "seals"])
        let used = try keys(try await rekey(installed, "--use"))
        #expect(used.map(\.role) == ["seals", "opens"] && used.map(\.id) == made.map(\.id))
        let old = used[1].id
        func insert(_ id: String, _ kind: String, _ key: String) async throws {
            let done = try await Child.run(
                "sqlite3",
                [
                    installed.directory("relay/twoefay.db"),
                    """
                    INSERT INTO factor (id, user_id, kind, state, secret, sealed_by, algorithm, digits, counter, failures,
                    created_at, operation) VALUES (x'\(id)', x'01', '\(kind)', 'active', x'00', '\(key)', 'sha1', 6, 0, 0,
                    '2026-11-22 00:00:00', x'01')
                    """,
                ])
            try #require(done.status == 0, "\(done.errors)")
        }
        try await insert("01", "totp", old)
        try await insert("02", "hotp", used[0].id)
        let status = try await rekey(installed, "--status")
        let counted = try #require(try status.json["keys"]?.array).compactMap(\.object)
        #expect(counted.map { $0["factors"]?.integer } == [1, 1])
        #expect(counted.map { $0["answers"]?.integer } == [0, 0])
        #expect(counted.map { $0["operations"]?.integer } == [0, 0])
        let before = try text(installed.directory("relay/master.key"))
        let refused = try await rekey(installed, "--finish")
        #expect(refused.status == 4)
        #expect(try refused.json["error"]?.object?["message"]?.string?.contains(old) == true)
        #expect(try text(installed.directory("relay/master.key")) == before)
        // A key that was removed by hand is reported as missing.
        try await insert("03", "sms", "0badc0de")
        let missing = try await rekey(installed, "--status")
        #expect(missing.status == 1)
        #expect(missing.output.contains("\"missing\""))
    }

    /// No factor needs the old key, only the webhook secrets of a website.
    @Test func keyInUseByWebhookSecretsIsKept() async throws {
        let installed = try await Installed()
        _ = try await rekey(installed)
        let used = try keys(try await rekey(installed, "--use"))
        func insert(_ id: String, _ key: String) async throws {
            let done = try await Child.run(
                "sqlite3",
                [
                    installed.directory("relay/twoefay.db"),
                    "INSERT INTO webhook_endpoint VALUES (x'\(id)', x'00', '\(key)', NULL, 'active', NULL, NULL, NULL, 0, x'01', '2026-11-22 09:00:00.000', NULL)",
                ])
            try #require(done.status == 0, "\(done.errors)")
        }
        try await insert("01", used[1].id)
        let status = try await rekey(installed, "--status")
        let counted = try #require(try status.json["keys"]?.array).compactMap(\.object)
        #expect(counted.map { $0["webhooks"]?.integer } == [0, 1])
        #expect(try await rekey(installed, "--finish").status == 4)
        try await insert("02", "0badc0de")
        let missing = try await rekey(installed, "--status")
        #expect(missing.status == 1)
        // The report is printed nevertheless, and names the fault.
        let report = try JSONReader.read(Array(missing.output.utf8)).object
        let rows = try #require(report?["keys"]?.array).compactMap(\.object)
        #expect(rows.last?["role"] == "missing" && rows.last?["webhooks"]?.integer == 1)
    }

    /// Only the secret of an operation that may still be repeated needs the old key.
    @Test func keyInUseByOperationSecretsIsKept() async throws {
        let installed = try await Installed()
        _ = try await rekey(installed)
        let used = try keys(try await rekey(installed, "--use"))
        try Fixture.execute(
            "INSERT INTO operation_secret VALUES (x'01', x'00', '\(used[1].id)', '2026-11-22 00:00:00.000')",
            in: installed)
        let status = try await rekey(installed, "--status")
        let counted = try #require(try status.json["keys"]?.array).compactMap(\.object)
        #expect(counted.map { $0["operations"]?.integer } == [0, 1])
        #expect(try await rekey(installed, "--finish").status == 4)
    }

    @Test func rekeyStepsCannotBeSkipped() async throws {
        let installed = try await Installed()
        #expect(try await rekey(installed, "--use", "--finish").status == 2)
        #expect(try await rekey(installed, "--use").status == 4)
        #expect(try await rekey(installed, "--finish").status == 4)
        let alone = try await rekey(installed, "--status")
        #expect(alone.status == 0)
        #expect(try keys(alone).map(\.role) == ["seals"])
        // Everything else works at each step.
        for (step, name) in [([], "a"), (["--use"], "b"), (["--finish"], "c")] {
            let done = try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "rekey"] + step)
            #expect(done.status == 0 && !done.output.isEmpty, "\(done.errors)")
            let added = try await BuiltProgram.twoefay(
                "--config", installed.settings, "website", "add", name, "--out", installed.directory.path)
            #expect(added.status == 0, "\(added.errors)")
        }
        #expect(
            try text(installed.directory("relay/master.key")).split(separator: "\n").count { !$0.hasPrefix("#") } == 1)
    }
}
