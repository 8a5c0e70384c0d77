import JSON
import TestSupport
import Testing
import World

/// The command that gives out temporary codes, and what a website can do with them.
@Suite("twoefay user temporary-code", .timeLimit(.minutes(15)), .mayBlock) struct TemporaryCodeCommandTests {
    private static let stores: [StoreKind] = [.file, .mariadb]
    private static let ofAda = ["ada", "--website", "shop"]

    private func fixture(_ kind: StoreKind) async throws -> Fixture {
        let fixture = try await Fixture(kind)
        try await fixture.relay.tool("website", "edit", "shop", "--factors", "push,totp,recovery,operator")
        return fixture
    }

    private func code(_ fixture: Fixture, _ options: String...) async throws -> String {
        let ended = try await fixture.tool(["user", "temporary-code"] + Self.ofAda + options + ["--json"])
        try #require(ended.status == 0, "\(ended.errors)")
        return try #require(try ended.json["code"]?.string)
    }

    private func answer(_ code: String, _ challenge: String, _ fixture: Fixture) async throws -> CurlCaller.Answer {
        try await fixture.shop.curl(
            "POST", "/backup", json: #"{"challenge":"\#(challenge)","otp":"\#(code)"}"#)
    }

    @Test(arguments: stores) func codeLogsInOverHTTPAndIsShownOnce(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        _ = try await fixture.bind(try await fixture.registered("ada"))
        let given = try await fixture.json(
            "user", "temporary-code", "ada", "--website", "shop", "--valid", "2h", "--reason", "ticket 4711")
        let code = try #require(given["code"]?.string)
        #expect(given["uses"] == 1 && given["may_enrol"] == false && given["website"] == "shop")
        #expect(given["announcements"]?.object?["told_by_mail"] == false)
        #expect(try fixture.trail("temporary.issued", outcome: "operator") == 1)
        let reason = "SELECT count(*) FROM AuditTrail WHERE event = 'temporary.issued' AND reason = 'ticket 4711'"
        #expect(try fixture.relay.count(reason) == 1)

        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(shown["temporary_code"]?.object?["state"] == "active")
        #expect(shown["ways_in"] == ["push", "operator"])
        let text = try await fixture.tool(["user", "show"] + Self.ofAda).output
        #expect(text.contains("twoefay user temporary-code ada --website shop --revoke"), "\(text)")
        #expect(!text.contains(code) && !text.contains(code.filter { $0 != "-" }))

        let wrong = String(code.map { $0 == "-" ? "-" : $0 == "7" ? "8" : "7" })
        let open = try await fixture.login("ada")
        #expect(try await answer(wrong, open, fixture)["login"] == "failure")
        #expect(try fixture.trail("code.wrong", outcome: "operator") == 1)
        // As a person types it, after the delay of a wrong code.
        try fixture.relay.execute("UPDATE user SET code_failed_at = '2020-01-01 00:00:00.000'")
        let typed = code.lowercased().replacing("-", with: " ")
        let answered = try await answer(typed, open, fixture)
        #expect(answered["login"] == "success" && answered["factor"] == "operator", "\(answered)")
        #expect(answered["assurance"] == "low" && answered["proof"] == "code", "\(answered)")
        let again = try await answer(code, try await fixture.login("ada"), fixture)
        #expect(again["login"] == "failure", "\(again)")
        let used = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(used["temporary_code"]?.object?["state"] == "used")
        #expect(try fixture.relay.count("SELECT count(*) FROM audit WHERE event = 'temporary.used'") == 1)
    }

    /// The whole way back of a user who has lost the phone.
    @Test(arguments: stores) func enrollingCodeBindsANewPhone(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let enrolment = try await fixture.registered("ada")
        let lost = try await fixture.bind(enrolment)
        func activation(_ approval: String? = nil) async throws -> CurlCaller.Answer {
            try await fixture.shop.curl(
                "POST", "/user/ada/activation", json: approval.map { #"{"approval":"\#($0)"}"# } ?? "{}")
        }
        let plain = try await code(fixture)
        let refused = try await activation()
        #expect(refused.status == 403 && refused["code"] == "approval_required", "\(refused)")
        let challenge = try #require(refused["challenge"]?.string)
        let forbidden = try await answer(plain, challenge, fixture)
        #expect(forbidden.status == 403 && forbidden["code"] == "forbidden", "\(forbidden)")
        #expect(forbidden["detail"]?.string?.contains("--may-enrol") == true, "\(forbidden)")

        let enrolling = try await code(fixture, "--may-enrol", "--yes")
        let second = try #require(try await activation()["challenge"]?.string)
        let approved = try await answer(enrolling, second, fixture)
        #expect(approved["login"] == "success" && approved["factor"] == "operator", "\(approved)")
        let made = try await activation(second)
        #expect(made.status == 201, "\(made)")
        let new = try await fixture.bind((enrolment.token, try #require(made["code"]?.string)))
        #expect(try await new.isKnown())
        #expect(try await fixture.json("device", "revoke", lost.device, "--yes")["state"] == "revoked")
        let login = try await fixture.shop.curl("POST", "/login", json: #"{"username":"ada"}"#)
        // The relay of this test has no push service, so the phone asks.
        #expect(login["login"] == "verified" && login["factor"] == "pull", "\(login)")
    }

    @Test(arguments: stores) func commandRefusesWhatWouldNotWork(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        let command = ["user", "temporary-code"] + Self.ofAda
        try await fixture.refused(command, 4, "shop does not allow temporary codes")
        let factors = "push,totp,hotp,sms,mail,recovery,operator"
        try await fixture.refused(command, 4, "twoefay website edit shop --factors \(factors)")
        try await fixture.relay.tool("website", "edit", "shop", "--factors", factors)
        let website = try await fixture.tool(["website", "show", "shop"])
        #expect(website.output.contains("operator"), "\(website.output)")
        for (options, message) in [
            (["--valid", "4m"], "--valid must be 5m to 24h"), (["--valid", "25h"], "--valid must be 5m to 24h"),
            (["--valid", "1d"], "--valid must be 5m to 24h"), (["--valid", "-5m"], "--valid must be 5m to 24h"),
            (["--uses", "0"], "--uses must be a number"), (["--uses", "6"], "--uses must be a number"),
            (["--revoke", "--uses", "1"], "--uses and --revoke exclude each other"),
            (["--revoke", "--may-enrol"], "--may-enrol and --revoke exclude each other"),
        ] {
            try await fixture.refused(command + options, 2, message)
        }
        for (change, message) in [
            ("state = 'frozen'", "lifts no freeze"), ("state = 'locked'", "lifts no lock"),
            ("state = 'disabled'", "is disabled"), ("codes_locked_at = created_at", "codes of ada of shop are locked"),
            ("expires_at = created_at", "twoefay user expire ada --website shop"),
        ] {
            try fixture.relay.execute("UPDATE user SET \(change)")
            try await fixture.refused(command, 4, message)
            try fixture.relay.execute(
                "UPDATE user SET state = 'active', codes_locked_at = NULL, expires_at = NULL")
        }
        try await fixture.relay.tool("website", "edit", "shop", "--min-assurance", "substantial")
        try await fixture.refused(command, 4, "shop demands the assurance substantial")
        try await fixture.relay.tool("website", "edit", "shop", "--min-assurance", "default")
        try fixture.relay.execute("UPDATE user SET policy = '{\"factors\":\"push, totp\"}'")
        try await fixture.refused(command, 4, "the group of ada of shop does not allow temporary codes")
        #expect(try fixture.relay.count("SELECT count(*) FROM temporary_code") == 0)
        try await fixture.refused(
            ["user", "temporary-code", "eve", "--website", "shop"], 3, "shop has no user eve")
        try await fixture.refused(
            ["user", "remove-factor", "ada", "operator", "--website", "shop"], 2, "--revoke")
    }

    @Test(arguments: stores) func anotherCodeNeedsAConfirmation(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        _ = try await fixture.registered("ada")
        let command = ["user", "temporary-code"] + Self.ofAda
        let first = try await code(fixture)
        for flags in [[], ["--json"]] {
            try await fixture.refused(command + flags, 2, "user temporary-code needs a confirmation")
        }
        let second = try await code(fixture, "--yes")
        #expect(try fixture.trail("temporary.revoked", outcome: "replaced") == 1)
        let login = try await fixture.login("ada")
        #expect(try await answer(first, login, fixture)["login"] == "failure")
        try fixture.relay.execute("UPDATE user SET code_failed_at = '2020-01-01 00:00:00.000'")
        #expect(try await answer(second, login, fixture)["login"] == "success")

        _ = try await code(fixture)
        let revoked = try await fixture.json("user", "temporary-code", "ada", "--website", "shop", "--revoke")
        #expect(revoked["code"] == .null && revoked["user"] == "ada")
        #expect(try fixture.trail("temporary.revoked", outcome: "operator") == 1)
        try await fixture.refused(command + ["--revoke"], 4, "ada of shop has no temporary code")
        #expect(try await fixture.json("user", "show", "ada", "--website", "shop")["temporary_code"] == .null)
    }

    @Test(arguments: stores) func exportAndDeletionIncludeTheCode(_ kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        _ = try await fixture.registered("ada")
        _ = try await code(fixture, "--may-enrol")
        let tables = try await fixture.json("user", "export", "ada", "--website", "shop")["tables"]?.object
        let row = try #require(tables?["temporary_code"]?.array?.first?.object)
        #expect(row["may_enrol"] == 1 && row["uses_left"] == 1 && row["digest"] == nil)
        _ = try await fixture.json("user", "delete", "ada", "--website", "shop", "--yes")
        #expect(try fixture.relay.count("SELECT count(*) FROM temporary_code") == 0)
    }
}
