import JSON
import TestSupport
import Testing

/// The command `twoefay outbox`, on the store of a stopped relay, because a running one would process the entries.
@Suite("twoefay outbox", .timeLimit(.minutes(15)), .mayBlock) struct OutboxCommandTests {
    private static let mail = "0000000000000000000000000000000a"
    private static let held = "0000000000000000000000000000000b"
    private static let left = "0000000000000000000000000000000c"
    private static let webhook = "0000000000000000000000000000000d"
    private static let lives = "00000000000000000000000000000001"

    /// Returns a store with a dead letter, and with one entry each that a living and a dead relay hold, not due for
    /// long.
    private func fixture(_ kind: StoreKind) async throws -> Fixture {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        await fixture.relay.stop()
        try write(to: fixture)
        return fixture
    }

    private func write(to fixture: Fixture) throws {
        try fixture.relay.execute(
            "INSERT INTO relay (id, beat, started_at) VALUES (x'\(Self.lives)', 0, '2025-01-01 00:00:00.000')")
        let rows = [
            (Self.mail, "mail", "NULL", "'2025-01-02 00:00:00.000'", "NULL"),
            (Self.held, "mail", "'2999-01-01 00:00:00.000'", "NULL", "x'\(Self.lives)'"),
            (Self.left, "mail", "'2999-01-01 00:00:00.000'", "NULL", "x'00000000000000000000000000000002'"),
        ]
        for (id, kind, due, dead, holder) in rows {
            try fixture.relay.execute(
                """
                INSERT INTO outbox (id, kind, event, user_id, created_at, expires_at, due_at, dead_at, reason, attempts, holder)
                SELECT x'\(id)', '\(kind)', 'user.locked', u.id, '2025-01-01 00:00:00.000', '2025-01-02 00:00:00.000',
                \(due), \(dead), '550 no such user', 3, \(holder) FROM user u WHERE u.username = 'ada'
                """)
        }
        try fixture.relay.execute(
            """
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, challenge_id, created_at, expires_at, webhook_due_at, attempts)
            SELECT x'\(Self.webhook)', 'webhook', 'login.decided', 0, u.id, u.website_id, x'\(Self.webhook)',
            '2025-01-01 00:00:00.000', '2025-01-02 00:00:00.000', '2999-01-01 00:00:00.000', 0
            FROM user u WHERE u.username = 'ada'
            """)
    }

    private func listed(_ fixture: Fixture, _ arguments: String...) async throws -> [JSONObject] {
        let ended = try await fixture.tool(["outbox", "list", "--json"] + arguments)
        try #require(ended.status == 0, "\(ended.errors)")
        return try ended.json["entries"]?.array?.compactMap(\.object) ?? []
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func outboxListShowsEntries(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let rows = try await listed(fixture)
        #expect(rows.compactMap { $0["id"]?.string } == [Self.mail, Self.held, Self.left, Self.webhook])
        #expect(rows.compactMap { $0["state"]?.string } == ["dead", "held", "left", "waiting"])
        let mail = try #require(rows.first)
        #expect(mail["kind"] == "mail" && mail["event"] == "user.locked" && mail["user"] == "ada")
        #expect(mail["website"] == "shop" && mail["reason"] == "550 no such user" && mail["attempts"] == 3)
        #expect(mail["dead_at"] == "2025-01-02T00:00:00.000Z" && mail["due_at"] == .null)
        #expect(rows[1]["relay"]?.string == Self.lives)
        #expect(rows[3]["due_at"] == "2999-01-01T00:00:00.000Z" && rows[3]["website"] == "shop")

        #expect(try await listed(fixture, "--dead").count == 1)
        #expect(try await listed(fixture, "--kind", "webhook").count == 1)
        #expect(try await listed(fixture, "--website", "shop", "--user", "ada").count == 4)
        #expect(try await listed(fixture, "--website", "shop", "--user", "bob").isEmpty)
        let first = try await fixture.json("outbox", "list", "--limit", "3")
        #expect(first["entries"]?.array?.count == 3 && first["more"] == true)
        let table = try await fixture.tool(["outbox", "list", "--dead"]).output
        #expect(
            table.contains(Self.mail) && table.contains("user.locked") && !table.contains("example.com"), "\(table)")
        #expect(try await fixture.tool(["outbox", "list", "--kind", "push"]).output == "No entries.\n")
        let status = try await fixture.tool(["status"])
        #expect(status.status == 5 && status.output.contains("Dead letters: 1."), "\(status)")

        try await fixture.refused(["outbox", "list", "--kind", "letter"], 2, "--kind must be one of push")
        try await fixture.refused(["outbox", "list", "--user", "ada"], 2, "--website is missing")
        try await fixture.refused(["outbox", "list", "--website", "bank"], 3, "there is no website bank")
        try await fixture.refused(["outbox", "list", "--limit", "0"], 2, "--limit must be a number")
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func outboxReplayRequeuesDeadLetters(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        try await fixture.refused(["outbox", "replay"], 2, "no ID is given")
        try await fixture.refused(["outbox", "replay", "12"], 2, "12 is not an ID")
        try await fixture.refused(["outbox", "replay", Self.mail, "--all-dead"], 2, "IDs and --all-dead")
        try await fixture.refused(["outbox", "replay", Self.lives], 3, "there is no \(Self.lives)")
        // If one of the entries cannot be replayed, none is.
        try await fixture.refused(["outbox", "replay", Self.mail, Self.held], 4, "\(Self.held) is not a dead letter")
        #expect(try await listed(fixture, "--dead").count == 1)

        #expect(try await fixture.json("outbox", "replay", Self.mail)["replayed"]?.array == [.string(Self.mail)])
        #expect(try await listed(fixture, "--dead").isEmpty)
        #expect(try fixture.trail("outbox.replayed", outcome: "user.locked") == 1)
        #expect(try await fixture.json("outbox", "replay", "--all-dead")["replayed"]?.array == [])
        let old = "expires_at < '2025-01-03' AND id = x'\(Self.mail)'"
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE \(old)") == 0)

        try fixture.relay.execute(
            "UPDATE outbox SET dead_at = '2025-01-02 00:00:00.000', due_at = NULL, webhook_due_at = NULL WHERE kind IN ('mail', 'webhook')"
        )
        // An entry that is not genuine does not prevent the replay of the others.
        let mail = "outbox WHERE id = x'\(Self.mail)' AND dead_at IS NOT NULL"
        let dead = Self.mail
        try fixture.relay.forge("UPDATE outbox SET counter = 99 WHERE id = x'\(dead)'")
        try await fixture.refused(["outbox", "replay", dead], 1, "the MAC of this row is not valid")
        #expect(try await fixture.json("outbox", "replay", "--all-dead")["replayed"]?.array?.count == 3)
        #expect(try fixture.relay.count("SELECT count(*) FROM \(mail)") == 1)
        _ = try await fixture.json("rows", "adopt", "outbox", dead, "--reason", "ticket 4711")
        #expect(try await fixture.json("outbox", "replay", dead)["replayed"]?.array?.count == 1)
        // Each kind is due in its own column, with the lifetime of a new entry.
        let due = "SELECT count(*) FROM outbox WHERE dead_at IS NULL AND expires_at > '2026' AND "
        #expect(try fixture.relay.count(due + "kind = 'mail' AND due_at IS NOT NULL AND webhook_due_at IS NULL") == 3)
        #expect(
            try fixture.relay.count(due + "kind = 'webhook' AND due_at IS NULL AND webhook_due_at < '2900-01-01'") == 1)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func outboxDropDeletesEntries(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        _ = try await fixture.bind(try await fixture.registered("bob"))
        let challenge = try await fixture.login("bob")
        await fixture.relay.stop()
        try write(to: fixture)
        let expiry = try #require(
            try await listed(fixture, "--kind", "expiry").first { $0["challenge"]?.string == challenge }?["id"]?.string)
        try await fixture.refused(["outbox", "drop", Self.mail, expiry], 4, "belongs to a login")
        #expect(try await listed(fixture, "--dead").count == 1)
        try await fixture.refused(["outbox", "drop", Self.mail, Self.webhook], 2, "2 entries are removed for good")
        let dropped = try await fixture.json("outbox", "drop", Self.mail, Self.webhook, "--yes")
        #expect(dropped["dropped"]?.array == [.string(Self.mail), .string(Self.webhook)])
        #expect(try await listed(fixture, "--dead").isEmpty)
        #expect(try fixture.trail("outbox.dropped", outcome: "user.locked") == 1)
        #expect(try fixture.trail("outbox.dropped", outcome: "login.decided") == 1)
        try await fixture.refused(["outbox", "drop", Self.mail], 3, "there is no \(Self.mail)")
    }

    /// A relay that performs the command for a caller reads the dead letters in pages, up to the last one.
    @Test(arguments: [StoreKind.file, .mariadb])
    func allDeadLettersAreReplayedAtTheSocket(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind) { try $0.set("control.socket", to: "unix:control") }
        _ = try await fixture.registered("ada")
        // There is one more than a relay lists, and one that no relay wrote.
        let count = 10_001
        let digits = (0..<10).map { "SELECT \($0) AS d" }.joined(separator: " UNION ALL ")
        let number = "10000 * e.d + 1000 * a.d + 100 * b.d + 10 * c.d + f.d"
        let id =
            kind == .mariadb
            ? "CAST(lpad(\(number), 16, '0') AS BINARY(16))" : "CAST(printf('%016d', \(number)) AS BLOB)"
        try fixture.relay.execute(
            """
            INSERT INTO outbox (id, kind, event, user_id, created_at, expires_at, dead_at, reason, attempts)
            SELECT \(id), 'mail', 'user.locked', u.id, u.created_at, u.created_at, u.created_at, '550', 3
            FROM user u JOIN (\(digits)) a JOIN (\(digits)) b JOIN (\(digits)) c JOIN (\(digits)) f
            JOIN (SELECT 0 AS d UNION ALL SELECT 1) e
            WHERE u.username = 'ada' AND \(number) < \(count)
            """)
        let seventh = "x'\(String(repeating: "30", count: 15))37'"
        try fixture.relay.forge("UPDATE outbox SET counter = 99 WHERE id = \(seventh)")
        let words = ["outbox", "replay", "--all-dead", "--json"]
        let answer = try await ControlPeer.run([words], at: fixture.relay.file("control"))[0]
        #expect(answer.word == "ok", "\(answer.failure)")
        let report = try #require(try JSONReader.read(Array(answer.output.utf8)).object)
        #expect(report["count"]?.integer == Int64(count) - 1 && report["refused"] == 1, "\(answer.output.prefix(200))")
        #expect(report["replayed"]?.array?.count == 10_000)
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL") == 1)
        #expect(try fixture.trail("outbox.replayed", outcome: "user.locked") == Int64(count) - 1)
        // The row that is not genuine is left.
        let again = try await ControlPeer.run([Array(words.dropLast())], at: fixture.relay.file("control"))[0]
        #expect(again.output.contains("Replayed: 0.") && again.output.contains("Not replayed: 1, because"), "\(again)")
    }
}
