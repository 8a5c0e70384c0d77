import Bytes
import JSON
import TestSupport
import Testing

@Suite("twoefay website edit and show", .timeLimit(.minutes(15)), .mayBlock) struct EditWebsiteTests {
    private func installed() async throws -> (installed: Installed, run: ([String]) async throws -> Child.Ended) {
        let installed = try await Installed()
        let added = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path, "--webhook",
            "https://shop.example.com/hook", "--number", "6")
        try #require(added.status == 0, "\(added.errors)")
        return (
            installed,
            { try await Child.run(try BuiltProgram.twoefay.path, ["--config", installed.settings, "website"] + $0) }
        )
    }

    @Test func editPrintsOldAndNewValues() async throws {
        let (_, run) = try await installed()
        let result = try await run([
            "edit", "shop", "--lifetime", "120", "--number", "default", "--webhook", "none", "--display-name",
            "The Shop", "--json", "--yes",
        ])
        #expect(result.status == 0, "\(result.errors)")
        #expect(
            try result.json["changed"]?.object == [
                "lifetime": ["before": "300", "after": "120"], "number": ["before": "6", "after": "2"],
                "webhook": ["before": "https://shop.example.com/hook", "after": .null],
                "display-name": ["before": "shop", "after": "The Shop"],
            ])
        let shown = try await run(["show", "shop", "--json"])
        #expect(shown.status == 0, "\(shown.errors)")
        let website = try shown.json
        #expect(website["display_name"] == "The Shop" && website["webhook"] == .null)
        #expect(website["policies"]?.object?["lifetime"] == "120" && website["policies"]?.object?["number"] == "2")
        #expect(website["own"] == ["lifetime"])
    }

    /// A value that this version cannot read is named, and can be replaced without SQL, by which the
    /// row would not be genuine any more.
    @Test func unreadablePolicyCanBeReplaced() async throws {
        let (installed, run) = try await installed()
        try Fixture.execute(#"UPDATE website SET policy = '{"number":"3","lifetime":"120"}'"#, in: installed)
        let broken = try await run(["show", "shop"])
        #expect(broken.status == 1 && broken.errors.contains("number must be 0, 2 or 6"), "\(broken.errors)")
        #expect(broken.errors.contains("website edit NAME --POLICY VALUE"), "\(broken.errors)")
        let other = try await run(["edit", "shop", "--lifetime", "90"])
        #expect(other.status == 1 && other.errors.contains("number must be 0, 2 or 6"), "\(other.errors)")
        let repaired = try await run(["edit", "shop", "--number", "2", "--json"])
        #expect(
            try repaired.json["changed"]?.object == ["number": ["before": "3", "after": "2"]], "\(repaired.errors)")
        #expect(try await run(["show", "shop", "--json"]).json["policies"]?.object?["lifetime"] == "120")
    }

    @Test func outdatedBoundIsReadAsNone() async throws {
        let (installed, run) = try await installed()
        try Fixture.execute(#"UPDATE website SET policy = '{"number-below":"30"}'"#, in: installed)
        let shown = try await run(["show", "shop", "--json"])
        #expect(try shown.json["policies"]?.object?["number-below"] == "none", "\(shown.errors)")
        #expect(try shown.json["remarks"]?.array?.count == 1)
        #expect(try await run(["show", "shop"]).output.contains("Warning: a stored policy is read as none"))
        let repaired = try await run(["edit", "shop", "--number-below", "30 EUR", "--json"])
        #expect(
            try repaired.json["changed"]?.object == ["number-below": ["before": "30", "after": "30 EUR"]],
            "\(repaired.errors)")
        #expect(try await run(["show", "shop", "--json"]).json["remarks"] == [])
    }

    @Test func showNamesTheSourceOfEachPolicy() async throws {
        let (_, run) = try await installed()
        // The same value as in the settings, but from now on independent of them.
        let kept = try await run(["edit", "shop", "--lifetime", "300"])
        #expect(kept.output.contains("300 (settings)  300\n"), "\(kept.output)")
        let again = try await run(["edit", "shop", "--lifetime", "300"])
        #expect(again.status == 0)
        #expect(again.output == "shop has these values already.\n")
        let shown = try await run(["show", "shop"])
        let rows = shown.output.split(separator: "\n").map { $0.split(separator: " ") }
        #expect(rows.contains(["lifetime", "300", "website"]), "\(shown.output)")
        #expect(rows.contains(["guesses", "10", "settings"]), "\(shown.output)")
    }

    @Test(
        arguments: [
            (["edit", "shop"], 2, "there is nothing to change"),
            (["edit", "shop", "--lifetime", "10"], 2, "--lifetime must be a whole number from 60 to 600"),
            (["edit", "shop", "--webhook", "http://shop.example.com"], 2, "--webhook must be"),
            (["edit", "shop", "--display-name", "default\u{202e}"], 2, "--display-name must not contain"),
            (["edit", "shop", "--colour", "red"], 2, "unknown option --colour"),
            (["edit"], 2, "NAME is missing"), (["edit", "shpo", "--number", "2"], 3, "there is no website shpo"),
            (["show", "Shop"], 3, "there is no website Shop"),
        ])
    func impossibleEditIsRefused(arguments: [String], status: Int32, message: String) async throws {
        let (installed, run) = try await installed()
        let before = try await run(["show", "shop"]).output
        let refused = try await run(arguments)
        #expect(refused.status == status)
        #expect(refused.errors.contains(message), "\(refused.errors)")
        #expect(refused.errors.split(separator: "\n").count >= 2, "says nothing of what to do: \(refused.errors)")
        #expect(try await run(["show", "shop"]).output == before)
        _ = installed
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func runningRelayAppliesAnEditAtOnce(kind: StoreKind) async throws {
        let relay = try await RunningRelay.start(kind)
        let shop = try await relay.website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"ada"}"#)
        try #require(registered.status == 201, "\(registered)")
        func shownName() async throws -> String? {
            let asked = try await shop.curl("POST", "/login", json: #"{"username":"ada"}"#)
            let challenge = try #require(asked["challenge"]?.string, "\(asked)")
            let result = try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
            let context = try #require(result["context"]?.string.flatMap { Base64URL.decode($0) }, "\(result)")
            return try JSONReader.read(context).object?["display_name"]?.string
        }
        #expect(try await shownName() == "shop")
        try await relay.tool("website", "edit", "shop", "--display-name", "The Shop")
        #expect(try await shownName() == "The Shop")
        let trail = "SELECT count(*) FROM AuditTrail WHERE website = 'shop' AND outcome = 'operator' AND event = "
        #expect(try relay.count(trail + "'website.edited'") == 1)
        #expect(try relay.count(trail + "'website.added'") == 1)
    }
}
