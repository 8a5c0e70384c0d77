import Bytes
import JSON
import TestSupport
import Testing
import World

/// The commands by which operators find, show, export and delete users.
@Suite("twoefay user list, search, logins, export and delete", .timeLimit(.minutes(15)), .mayBlock)
struct PeopleCommandTests {
    private static let stores: [StoreKind] = [.file, .mariadb]

    private struct Printed {
        let users: [JSONObject]
        let summary: JSONObject

        var names: [String?] { users.map { $0["user"]?.string } }
    }

    /// Runs a command that prints a user in each line.
    private func lines(_ fixture: Fixture, _ arguments: String...) async throws -> Printed {
        let ended = try await fixture.tool(arguments + ["--json"])
        try #require(ended.status == 0, "\(ended.errors)")
        var objects: [JSONObject] = []
        for line in ended.output.split(separator: "\n") {
            objects.append(try #require(try JSONReader.read(Array(line.utf8)).object, "\(line)"))
        }
        return Printed(users: objects.dropLast(), summary: try #require(objects.last))
    }

    @Test(arguments: stores) func usersAreListedInPages(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let club = try await fixture.relay.website("club")
        for name in ["ada", "bob", "carl"] { _ = try await fixture.registered(name) }
        #expect(try await club.curl("POST", "/register", json: #"{"username":"ada"}"#).status == 201)
        try fixture.relay.execute("UPDATE user SET state = 'frozen' WHERE username = 'bob'")

        let all = try await lines(fixture, "user", "list")
        #expect(
            all.users.map { "\($0["website"]?.string ?? "") \($0["user"]?.string ?? "")" }
                == ["club ada", "shop ada", "shop bob", "shop carl"])
        #expect(all.summary["count"] == 4 && all.summary["after"] == .null)
        let ada = try #require(all.users.dropFirst().first)
        #expect(ada["email"] == "ada@example.com" && ada["state"] == "active" && ada["codes"] == "open")
        #expect(all.users.first?["email"] == .null)

        let frozen = try await lines(fixture, "user", "list", "--website", "shop", "--state", "frozen")
        #expect(frozen.names == ["bob"])
        let first = try await lines(fixture, "user", "list", "--website", "shop", "--limit", "2")
        #expect(first.names == ["ada", "bob"] && first.summary["after"] == "bob")
        let rest = try await lines(fixture, "user", "list", "--website", "shop", "--after", "bob")
        #expect(rest.names == ["carl"] && rest.summary["count"] == 1)

        let text = try await fixture.tool(["user", "list", "--state", "frozen"]).output
        #expect(text.contains("frozen    open    ") && text.hasSuffix("shop     bob\n1 user.\n"), "\(text)")
        #expect(try await fixture.tool(["user", "list", "--state", "locked"]).output == "No user matches.\n")
        try await fixture.refused(["user", "list", "--state", "gone"], 2, "--state must be one of active, locked")
        try await fixture.refused(["user", "list", "--limit", "0"], 2, "--limit must be a number")
        try await fixture.refused(["user", "list", "--after", "ada"], 2, "--after needs --website")
        try await fixture.refused(["user", "list", "--website", "none"], 3, "there is no website none")
    }

    /// More users than a page has.
    @Test(arguments: stores) func listGoesOnAfterAPage(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        let columns = "website_id, state, created_at, operation"
        for start in stride(from: 0, to: 1100, by: 100) {
            let rows = (start..<start + 100).map { number in
                let id = String(number + 0x1_0000, radix: 16)
                let blob = "x'" + String(repeating: "0", count: 32 - id.count) + id + "'"
                return "SELECT \(blob) AS id, \(blob) AS token, 'user-\(number + 1000)' AS username"
            }
            try fixture.relay.execute(
                """
                INSERT INTO user (id, token, username, \(columns)) SELECT n.id, n.token, n.username, u.website_id, 'active',
                u.created_at, u.operation FROM (\(rows.joined(separator: " UNION ALL "))) n JOIN user u
                ON u.username = 'ada'
                """)
        }
        let all = try await lines(fixture, "user", "list")
        #expect(all.summary["count"] == 1101 && all.users.count == 1101)
        #expect(Set(all.names).count == 1101 && all.names.last == "user-2099")
        let found = try await lines(fixture, "user", "search", "USER-209")
        #expect(found.names == (2090...2099).map { "user-\($0)" })
    }

    /// The search opens sealed addresses, which no SQL can search.
    @Test(arguments: stores) func usersAreSearchedByPartsAlsoIfSealed(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind) { $0 += "\nseal: personal\n" }
        _ = try await fixture.registered("ada", email: "Lovelace@example.org")
        _ = try await fixture.registered("bob")
        let stored = try fixture.relay.count("SELECT count(*) FROM user WHERE email LIKE 'sealed:%'")
        #expect(stored == 2)
        for (text, names) in [
            ("lovelace", ["ada"]), ("@EXAMPLE.", ["ada", "bob"]), ("BO", ["bob"]), ("sealed:", []), ("nobody", []),
        ] {
            #expect(try await lines(fixture, "user", "search", text).names == names, "\(text)")
        }
        let id = try #require(try await lines(fixture, "user", "search", "bob").users.first?["id"]?.string)
        #expect(try await lines(fixture, "user", "search", id).names == ["bob"])
        try await fixture.refused(["user", "search", ""], 2, "TEXT must not be empty")
        let exported = try await fixture.json("user", "export", "ada", "--website", "shop")
        let user = exported["tables"]?.object?["user"]?.array?.first?.object
        #expect(user?["email"] == "Lovelace@example.org")
    }

    @Test(arguments: stores) func loginsAreListedNewestFirst(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.bind(try await fixture.registered("ada"))
        let none = try await fixture.tool(["user", "logins", "ada", "--website", "shop"])
        #expect(none.output == "ada of shop has no login in the store.\n", "\(none.errors)")
        let asked = try await fixture.shop.curl(
            "POST", "/login", json: #"{"username":"ada","ip":"192.0.2.7","action":"log in"}"#)
        let first = try #require(asked["challenge"]?.string, "\(asked)")
        let second = try await fixture.login("ada")
        let list = try await fixture.json("user", "logins", "ada", "--website", "shop")
        let logins = try #require(list["logins"]?.array).compactMap(\.object)
        #expect(logins.map { $0["challenge"]?.string } == [second, first])
        #expect(logins.last?["login"] == "failure" && logins.last?["reason"] == "superseded")
        #expect(logins.last?["context"]?.object?["ip"] == "192.0.2.7")
        let text = try await fixture.tool(["user", "logins", "ada", "--website", "shop", "--limit", "1"]).output
        let before = try #require(logins.first?["asked_at"]?.string)
        #expect(text.contains("For earlier logins: --before \(before)"), "\(text)")
        let older = try await fixture.json("user", "logins", "ada", "--website", "shop", "--before", before)
        #expect(older["logins"]?.array?.compactMap { $0.object?["challenge"]?.string } == [first])
        try await fixture.refused(
            ["user", "logins", "ada", "--website", "shop", "--limit", "1001"], 2, "--limit must be a number")
        try await fixture.refused(
            ["user", "logins", "ada", "--website", "shop", "--before", "today"], 2, "--before must be a time")
    }

    @Test(arguments: stores) func exportHasAllButSecrets(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        let bob = try await fixture.bind(try await fixture.registered("bob"))
        let challenge = try await fixture.login("ada")
        let ended = try await fixture.tool(["user", "export", "ada", "--website", "shop"])
        let exported = try ended.json
        let tables = try #require(exported["tables"]?.object)
        func rows(_ table: String) -> [JSONObject] { tables[table]?.array?.compactMap(\.object) ?? [] }
        #expect(rows("user").map { $0["username"] } == ["ada"])
        #expect(rows("device").map { $0["id"]?.string } == [phone.device])
        #expect(rows("device").first?["push_token"] == "abcdef0123456789")
        #expect(rows("factor").map { $0["address"] } == ["ada@example.com"])
        #expect(rows("challenge").map { $0["id"]?.string } == [challenge])
        #expect(rows("challenge").first?["context"]?.object?["username"] == "ada")
        #expect(rows("audit").contains { $0["event"] == "device.bound" })
        #expect(!ended.output.contains(bob.device) && !ended.output.contains("bob@example.com"))
        let withheld = Set((exported["withheld"]?.array ?? []).compactMap(\.string))
        #expect(withheld.isSuperset(of: ["secret", "mac", "digest"]))
        for (name, rows) in tables.members.map({ ($0.name, rows($0.name)) }) {
            for row in rows { #expect(withheld.isDisjoint(with: row.names), "\(name) \(row.names)") }
        }
        #expect(try fixture.trail("user.exported", outcome: "operator") == 1)
        try await fixture.refused(["user", "export", "eve", "--website", "shop"], 3, "shop has no user eve")
    }

    @Test(arguments: stores) func deletionNeedsAConfirmationAndDeletesEverything(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        let open = try await fixture.login("ada")
        for flags in [[], ["--json"]] {
            try await fixture.refused(
                ["user", "delete", "ada", "--website", "shop"] + flags, 2, "user delete needs a confirmation")
        }
        #expect(try await phone.isKnown())
        let deleted = try await fixture.json("user", "delete", "ada", "--website", "shop", "--yes")
        #expect(deleted["state"] == "deleted" && deleted["ended"] == [.string(open)])
        #expect(try await !phone.isKnown())
        try await fixture.refused(["user", "show", "ada", "--website", "shop"], 3, "shop has no user ada")
        try await fixture.refused(["user", "delete", "ada", "--website", "shop", "--yes"], 3, "shop has no user ada")
        #expect(try await fixture.result(open).status == 404)
        for table in ["user", "device", "factor", "challenge", "activation", "outbox", "step"] {
            #expect(try fixture.relay.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
        #expect(try fixture.trail("user.forgotten", outcome: "operator") == 1)
        // The name is free again, for another user.
        _ = try await fixture.registered("ada")
        #expect(try await !phone.isKnown())
    }
}
