import Bytes
import JSON
import TestSupport
import Testing

/// The operator's commands for webhooks, on the store of a stopped relay, because a running one would process the
/// entries.
@Suite("twoefay website webhook", .timeLimit(.minutes(15)), .mayBlock) struct WebhookCommandTests {
    private static let url = "https://shop.example.com/hook"

    /// Returns a shop with a webhook URL, and the users ada and bob.
    private func fixture(_ kind: StoreKind) async throws -> Fixture {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        _ = try await fixture.registered("bob")
        await fixture.relay.stop()
        _ = try await fixture.json(
            "website", "edit", "shop", "--webhook", Self.url, "--out", fixture.relay.directory.path)
        return fixture
    }

    private enum Moment {
        static let early = "2025-01-01 00:00:00.000"
        static let late = "2025-06-01 00:00:00.000"
        static let next = "2999-01-01 00:00:00.000"
    }

    /// Writes a webhook to the shop, pending or dead.
    private func write(
        _ digit: Character, to fixture: Fixture, about user: String = "ada", created: String = Moment.early,
        due: String? = Moment.next
    ) throws {
        let id = String(repeating: digit, count: 32)
        let (due, dead) = (due.map { "'\($0)'" } ?? "NULL", due == nil ? "'\(created)'" : "NULL")
        try fixture.relay.execute(
            """
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, dead_at, reason,
            attempts) SELECT x'\(id)', 'webhook', 'user.locked', 1, u.id, u.website_id, '\(created)', '\(created)',
            \(due), \(dead), 'answered 500', 8 FROM user u WHERE u.username = '\(user)'
            """)
    }

    private func shown(_ fixture: Fixture) async throws -> JSONObject {
        try #require(try await fixture.json("website", "show", "shop")["webhook_state"]?.object)
    }

    private func secret(_ path: String) throws -> [UInt8] {
        let text = try text(path)
        let key = try #require(text.hasPrefix("whsec_") && text.hasSuffix("\n") ? text.dropFirst(6).dropLast() : nil)
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        return try #require(Base64.decode(String(key)))
    }

    // MARK: The webhook URL

    @Test(arguments: [StoreKind.file, .mariadb]) func addedWebsiteHasAWebhookSecret(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        await fixture.relay.stop()
        let directory = fixture.relay.directory
        let add = ["website", "add", "bank", "--webhook", "https://bank.example.com/", "--out", directory.path]
        let added = try await fixture.tool(add + ["--json"])
        #expect(try added.json["secret"]?.string == directory("bank.secret"), "\(added.errors)")
        #expect(try secret(directory("bank.secret")).count == 32)
        #expect(!added.output.contains(try text(directory("bank.secret")).dropLast()))
        let list = try #require(try await fixture.json("website", "list")["websites"]?.array).compactMap(\.object)
        #expect(list.map { $0["webhook_state"] } == [.object(["state": "working"]), .null])
        #expect(try fixture.relay.count("SELECT count(*) FROM webhook_endpoint WHERE secrets LIKE '%whsec%'") == 0)
        #expect(try fixture.relay.count("SELECT count(*) FROM webhook_endpoint WHERE state = 'active'") == 1)

        // A website that could not be added leaves nothing behind.
        try TextFile.write("", to: directory("club.secret"))
        try await fixture.refused(
            ["website", "add", "club", "--webhook", "https://club.example.com/", "--out", directory.path], 4,
            "club.secret: File exists")
        #expect(directory.names.filter { $0.hasPrefix("club") } == ["club.secret"])
        _ = try await fixture.tool(add)
        try await fixture.refused(
            ["website", "add", "bank", "--webhook", "https://bank.example.com/", "--out", fixture.relay.installation],
            4, "there is or was a website bank")
        #expect(!TemporaryDirectory.names(in: fixture.relay.installation).contains("bank.secret"))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func websiteEditAddsMovesAndRemovesTheWebhook(_ kind: StoreKind)
        async throws
    {
        let fixture = try await fixture(kind)
        let directory = fixture.relay.directory
        let first = try secret(directory("shop.secret"))
        #expect(try await shown(fixture)["state"] == "working")

        // At another URL the endpoint keeps its secret, and its failures are cleared.
        try fixture.relay.execute(
            "UPDATE webhook_endpoint SET failing_since = '2025-01-01 00:00:00.000', failed_attempts = 7")
        #expect(try await shown(fixture)["tries"] == 7)
        let moved = try await fixture.json("website", "edit", "shop", "--webhook", Self.url + "2")
        #expect(moved["secret"] == nil)
        var members = try await shown(fixture)
        #expect(members["secret_made_at"]?.string != nil)
        members["secret_made_at"] = nil
        #expect(
            members == [
                "state": "working", "secret_fetched_at": .null, "previous_until": .null, "waiting": 0, "oldest": .null,
                "dead": 0,
            ])
        try await fixture.refused(
            ["website", "edit", "shop", "--webhook", Self.url, "--out", directory.path], 2, "no secret is created")

        // Its pending webhooks are deleted, and the other website keeps its own.
        _ = try await fixture.json(
            "website", "add", "bank", "--webhook", "https://bank.example.com/", "--out", directory.path)
        for digit in "abc" { try write(digit, to: fixture) }
        try write("d", to: fixture, due: nil)
        try fixture.relay.execute(
            "UPDATE outbox SET website_id = (SELECT id FROM website WHERE name = 'bank') WHERE id = x'\(String(repeating: "c", count: 32))'"
        )
        _ = try await fixture.json("website", "edit", "shop", "--webhook", "none", "--yes")
        #expect(try fixture.relay.count("SELECT count(*) FROM webhook_endpoint") == 1)
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE kind = 'webhook'") == 1)
        #expect(try await fixture.json("website", "show", "shop")["webhook_state"] == .null)
        try await fixture.refused(["website", "webhook", "shop", "disable"], 3, "shop has no webhook endpoint")

        let again = ["website", "edit", "shop", "--webhook", Self.url, "--out"]
        try await fixture.refused(again + [directory.path], 4, "shop.secret: File exists")
        #expect(try await fixture.json("website", "show", "shop")["webhook"] == .null)
        _ = try await fixture.tool(again + [fixture.relay.installation])
        #expect(try secret(fixture.relay.file("shop.secret")) != first)
    }

    @Test func removingAWebhookDropsManyEntries() async throws {
        let fixture = try await fixture(.file)
        try write("a", to: fixture)
        try fixture.relay.execute(
            """
            INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            SELECT randomblob(16), kind, event, ordinal, user_id, website_id, created_at, expires_at, webhook_due_at, attempts
            FROM n, outbox
            """)
        #expect(try await shown(fixture)["waiting"] == 1201)
        _ = try await fixture.json("website", "edit", "shop", "--webhook", "none", "--yes")
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE kind = 'webhook'") == 0)
    }

    // MARK: Its secret

    @Test(arguments: [StoreKind.file, .mariadb]) func rotatedSecretsAreBothValidForADay(_ kind: StoreKind) async throws
    {
        let fixture = try await fixture(kind)
        let directory = fixture.relay.directory
        func rotate(_ more: String...) async throws -> JSONObject {
            let ended = try await fixture.tool(
                ["website", "webhook", "shop", "rotate-secret", "--out", directory.path, "--json"] + more)
            try #require(ended.status == 0, "\(ended.errors)")
            return try ended.json
        }
        let made = try await rotate()
        #expect(made["secret"]?.string == directory("shop.secret.new"))
        #expect(try secret(directory("shop.secret.new")) != (try secret(directory("shop.secret"))))
        let until = try #require(made["previous_until"]?.string)
        #expect(try await shown(fixture)["previous_until"]?.string == until)
        #expect(
            try await fixture.tool(["website", "show", "shop"]).output.contains("two secrets are valid until \(until)"))
        let span = "previous_until > '2026-01-01' AND state = 'active'"
        #expect(try fixture.relay.count("SELECT count(*) FROM webhook_endpoint WHERE \(span)") == 1)

        // A third secret would make the first one void, which the website may still use.
        let other = fixture.relay.installation
        try await fixture.refused(
            ["website", "webhook", "shop", "rotate-secret", "--out", other], 4,
            "two secrets of shop are valid already, until"
        )
        #expect(!TemporaryDirectory.names(in: other).contains("shop.secret.new"))
        try await fixture.refused(
            ["website", "webhook", "shop", "rotate-secret", "--at-once", "--out", directory.path], 4,
            "shop.secret.new: File exists")
        #expect(try await shown(fixture)["previous_until"]?.string == until)

        // After a day the former secret is not valid any more, and another can follow.
        try fixture.relay.execute("UPDATE webhook_endpoint SET previous_until = '2025-01-01 00:00:00.000'")
        #expect(try await shown(fixture)["previous_until"] == .null)
        try TextFile.write("", to: directory("moved"))
        _ = try await Child.run("mv", ["shop.secret.new", "shop.secret"], in: directory.path)
        #expect(try await rotate()["previous_until"]?.string != nil)

        _ = try await Child.run("mv", ["shop.secret.new", "shop.secret"], in: directory.path)
        #expect(try await rotate("--at-once")["previous_until"] == .null)
        #expect(try await shown(fixture)["previous_until"] == .null)
        #expect(try fixture.trail("webhook.rotated", outcome: "operator") == 3)
    }

    /// A website that has stopped fetching does not keep the operator from a rotation.
    @Test func secretThatNobodyFetchedIsRotated() async throws {
        let fixture = try await fixture(.file)
        let directory = fixture.relay.directory
        let rotate = ["website", "webhook", "shop", "rotate-secret", "--out", directory.path]
        try #require(try await fixture.tool(rotate).status == 0)
        try fixture.relay.execute("UPDATE webhook_endpoint SET previous_until = '9999-12-31 00:00:00.000'")
        _ = try await Child.run("mv", ["shop.secret.new", "shop.secret.rolled"], in: directory.path)
        let ended = try await fixture.tool(rotate)
        #expect(ended.status == 0, "\(ended.errors)")
        let span = "previous_until > '2026-01-01' AND previous_until < '9999-01-01'"
        #expect(try fixture.relay.count("SELECT count(*) FROM webhook_endpoint WHERE \(span)") == 1)
    }

    @Test func unreadableSecretIsReplacedAtOnce() async throws {
        let fixture = try await fixture(.file)
        try fixture.relay.execute("UPDATE webhook_endpoint SET secrets = x'0001'")
        try await fixture.refused(
            ["website", "webhook", "shop", "rotate-secret", "--out", fixture.relay.installation], 1,
            "cannot be decrypted"
        )
        #expect(!TemporaryDirectory.names(in: fixture.relay.installation).contains("shop.secret.new"))
        _ = try await fixture.json(
            "website", "webhook", "shop", "rotate-secret", "--at-once", "--out", fixture.relay.installation)
        #expect(try secret(fixture.relay.file("shop.secret.new")).count == 32)
    }

    // MARK: Disabling and enabling

    @Test(arguments: [StoreKind.file, .mariadb]) func webhookIsDisabledAndEnabled(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        try write("a", to: fixture)
        try write("b", to: fixture, due: nil)
        try await fixture.refused(["website", "webhook", "shop", "enable"], 4, "shop is enabled already")
        let disabled = try await fixture.json("website", "webhook", "shop", "disable")
        #expect(disabled["before"] == "working" && disabled["state"] == "disabled")
        let state = try await shown(fixture)
        #expect(state["state"] == "disabled" && state["reason"] == "operator" && state["since"]?.string != nil)
        #expect(state["waiting"] == 1 && state["dead"] == 1 && state["oldest"] == "2025-01-01T00:00:00.000Z")
        try await fixture.refused(["website", "webhook", "shop", "disable"], 4, "shop is disabled already, since")
        let listed = try await fixture.tool(["website", "list"]).output
        #expect(listed.contains("disabled  \(Self.url)"), "\(listed)")
        let shelved = try await fixture.json("outbox", "list", "--kind", "webhook")
        #expect(shelved["entries"]?.array?.map { $0.object?["state"] } == ["shelved", "dead"])
        let status = try await fixture.tool(["status"]).output
        #expect(status.contains("1 disabled webhook endpoint, with 1 pending webhook"), "\(status)")
        #expect(!status.contains("× webhook"))

        // An endpoint that a relay disabled is enabled in the same way.
        try fixture.relay.execute("UPDATE webhook_endpoint SET disabled_by = 'unsubscribed', failed_attempts = 12")
        #expect(try await fixture.tool(["website", "show", "shop"]).output.contains("the website answered 410"))
        // A webhook that a relay holds gets its outcome; the others are due now.
        try write("c", to: fixture)
        try fixture.relay.execute(
            "UPDATE outbox SET holder = x'\(String(repeating: "1", count: 32))' WHERE id = x'\(String(repeating: "c", count: 32))'"
        )
        let enabled = try await fixture.json("website", "webhook", "shop", "enable")
        #expect(enabled["waiting"] == 2 && enabled["dead"] == 1)
        #expect(try await shown(fixture)["state"] == "working")
        let due = "SELECT count(*) FROM outbox WHERE kind = 'webhook' AND webhook_due_at < '2900-01-01'"
        #expect(try fixture.relay.count(due) == 1)
        #expect(
            try fixture.relay.count(
                "SELECT count(*) FROM webhook_endpoint WHERE failed_attempts = 0 AND failing_since IS NULL") == 1)
        #expect(try fixture.trail("webhook.disabled", outcome: "operator") == 1)
        #expect(try fixture.trail("webhook.enabled", outcome: "operator") == 1)
        #expect(try await fixture.tool(["status"]).output.contains("Pending: 2 × webhook"))
    }

    // MARK: The test event

    @Test(.enabled(if: TestWebhookServer.isInstalled, "standardwebhooks is not installed; run: dev/need test"))
    func webhookTestSendsAnEvent() async throws {
        let receiver = try await TestWebhookServer()
        let installed = try await Installed()
        func allow(_ ranges: String) throws {
            var settings = try text(installed.settings)
            try settings.set("webhooks.allow", to: ranges)
            try TextFile.write(settings, to: installed.settings)
        }
        func tool(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "website"] + arguments,
                in: installed.directory.path)
        }
        let refused = try await tool("add", "shop", "--webhook", receiver.url)
        #expect(refused.status == 2 && refused.errors.contains("'webhooks.allow'"), "\(refused.errors)")
        try allow("127.0.0.0/8")
        #expect(try await tool("add", "shop", "--webhook", receiver.url).status == 0)
        try receiver.learn(try text(installed.directory("shop.secret")))

        let taken = try await tool("webhook", "shop", "test", "--json")
        #expect(taken.status == 0, "\(taken.errors)")
        let event = try await receiver.event("twoefay.test")
        #expect(event.verdicts == ["accepted"] && event.data == ["website": "shop"])
        let said = try taken.json
        #expect(said["accepted"] == true && said["status"] == 204 && said["id"]?.string == event.id)

        for (status, reason) in [(500, "answered 500"), (302, "redirects (302)"), (410, "gone (410)")] {
            try receiver.answer(status)
            let other = try await tool("webhook", "shop", "test")
            #expect(other.status == 1 && other.output.contains("did not accept the event: \(reason)"), "\(other)")
        }
        // The test is sent from this machine, and changes nothing.
        #expect(try await tool("list").output.contains("working"))
        #expect(try receiver.events.count == 4)

        #expect(try await tool("edit", "shop", "--webhook", "http://127.0.0.1:1/").status == 0)
        let nobody = try await tool("webhook", "shop", "test", "--json")
        #expect(nobody.status == 5 && nobody.output.contains("not reached"), "\(nobody)")
        try allow("10.0.0.0/8")
        let inside = try await tool("webhook", "shop", "test")
        #expect(inside.status == 5 && inside.output.contains("webhooks.allow"), "\(inside)")
    }

    // MARK: Dead letters

    @Test(arguments: [StoreKind.file, .mariadb]) func webhookReplayRequeuesDeadLettersOfOneWebsite(_ kind: StoreKind)
        async throws
    {
        let fixture = try await fixture(kind)
        let replay = ["website", "webhook", "shop", "replay"]
        #expect(try await fixture.tool(replay).output.contains("shop has no dead letters"))
        try write("a", to: fixture, due: nil)
        try write("b", to: fixture, created: Moment.late, due: nil)
        try write("c", to: fixture)
        try fixture.relay.execute(
            """
            INSERT INTO outbox (id, kind, event, user_id, created_at, expires_at, dead_at, attempts)
            SELECT x'\(String(repeating: "d", count: 32))', 'mail', 'user.locked', id, '\(Moment.late)', '\(Moment.late)',
            '\(Moment.late)', 3 FROM user WHERE username = 'bob'
            """)
        try await fixture.refused(replay + ["--since", "yesterday"], 2, "--since yesterday is not a time")
        #expect(
            try await fixture.json("website", "webhook", "shop", "replay", "--since", "2025-03-01")["replayed"] == 1)
        let alive =
            "kind = 'webhook' AND dead_at IS NULL AND webhook_due_at < '2900-01-01' AND attempts = 0 AND expires_at > webhook_due_at"
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE \(alive)") == 1)
        #expect(try await shown(fixture)["dead"] == 1)
        #expect(try await fixture.json("website", "webhook", "shop", "replay")["replayed"] == 1)
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE \(alive)") == 2)
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL") == 1)
        #expect(try fixture.trail("webhook.replayed", outcome: "operator") == 2)
    }

    @Test(
        arguments: [
            (["shop"], 2, "ACTION is missing"), (["shop", "stop"], 2, "ACTION must be one of rotate-secret, disable"),
            (["shop", "enabel"], 2, "did you mean enable?"),
            (["shop", "disable", "--at-once"], 2, "--at-once belongs to rotate-secret, not to disable"),
            (["shop", "rotate-secret", "--since", "2025-01-01"], 2, "--since belongs to replay"),
            (["shpo", "disable"], 3, "there is no website shpo"),
            (["shop", "rotate-secret"], 3, "shop has no webhook endpoint"),
        ])
    func impossibleWebhookChangeIsRefused(arguments: [String], status: Int32, message: String) async throws {
        let installed = try await Installed()
        _ = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        let refused = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "website", "webhook"] + arguments,
            in: installed.directory.path)
        #expect(refused.status == status && refused.errors.contains(message), "\(refused.errors)")
        #expect(refused.errors.split(separator: "\n").count >= 2, "says nothing of what to do: \(refused.errors)")
        #expect(!installed.directory.names.contains { $0.contains("secret") })
    }
}
