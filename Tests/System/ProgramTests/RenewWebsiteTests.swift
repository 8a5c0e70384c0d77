import JSON
import TestSupport
import Testing

/// The renewal and the removal of a website, with a relay that runs.
@Suite("twoefay website renew and remove", .timeLimit(.minutes(15)), .mayBlock) struct RenewWebsiteTests {
    private static func caller(_ fixture: Fixture, _ renewed: JSONObject) throws -> CurlCaller {
        fixture.relay.caller(
            certificatePath: try #require(renewed["certificate"]?.string),
            keyPath: try #require(renewed["key"]?.string))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func websiteChangesToItsNewKey(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        let renewed = try await fixture.json("website", "renew", "shop", "--out", fixture.relay.directory.path)
        let thumbprint = try #require(renewed["thumbprint"]?.string)
        #expect(renewed["certificate"]?.string?.hasSuffix("/shop-\(thumbprint.prefix(8)).pem") == true)
        let new = try Self.caller(fixture, renewed)
        for caller in [fixture.shop, new] {
            #expect(try await caller.curl("GET", "/user/ada").status == 200)
        }
        // The relay notes the uses within seconds; the last one is that of the new key.
        var keys: [JSONObject] = []
        repeat {
            let shown = try await fixture.json("website", "show", "shop")
            keys = try #require(shown["keys"]?.array).compactMap(\.object)
        } while !keys.allSatisfy { $0["used_at"]?.string != nil }
        #expect(keys.count == 2)
        let former = try #require(keys.first { $0["thumbprint"]?.string != thumbprint }?["thumbprint"]?.string)
        #expect(renewed["former"] == [.string(former)])
        _ = try await fixture.json("website", "revoke-key", "shop", former, "--yes")
        #expect(try await new.curl("GET", "/user/ada").status == 200)
        #expect(try await fixture.shop.curl("GET", "/user/ada").status == 401)

        let expiring = try await fixture.json("website", "list", "--expiring", "900")
        #expect(expiring["websites"]?.array?.first?.object?["website"] == "shop")
        #expect(try await fixture.json("website", "list", "--expiring")["websites"] == [])
        #expect(try await fixture.json("website", "list", "--unmoved")["websites"] == [])
        let status = try await fixture.json("status")
        #expect(
            status["website_certificates"]?.array?.first?.object?["expires_at"]
                == renewed["expires_at"])
    }

    @Test func formerKeyEndsAtOnceIfAsked() async throws {
        let fixture = try await Fixture(.file)
        let renewal = ["website", "renew", "shop", "--end", "0", "--out", fixture.relay.directory.path]
        try await fixture.refused(renewal, 2, "needs a confirmation")
        #expect(try await fixture.shop.curl("GET", "/user/ada").status == 404)
        let ended = try await fixture.tool(renewal + ["--yes", "--json"])
        #expect(ended.status == 0, "\(ended)")
        let renewed = try ended.json
        let row = try await fixture.json("audit", "search", "--event", "website.renewed")["rows"]?.array?.first?.object
        #expect(row?["note"] == renewed["thumbprint"], "\(String(describing: row))")
        let changes = row?["changes"]?.object
        #expect(changes?["others_end"]?.object?["after"] == renewed["others_end"])
        #expect(changes?["expires_at"]?.object?["after"] == renewed["expires_at"])
        #expect(try await fixture.shop.curl("GET", "/user/ada").status == 401)
        #expect(try await Self.caller(fixture, renewed).curl("GET", "/user/ada").status == 404)
        try await fixture.refused(
            ["website", "renew", "shop", "--end", "x"], 2, "--end must be a whole number of days")
        try await fixture.refused(["website", "renew", "bank"], 3, "there is no website bank")
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func removedWebsiteTakesItsUsersWithIt(
        _ kind: StoreKind
    ) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        _ = try await fixture.registered("ben")
        let challenge = try await fixture.login("ada")
        try await fixture.refused(["website", "remove", "shop"], 2, "website remove needs a confirmation")
        #expect(try await phone.isKnown())
        let removed = try await fixture.json("website", "remove", "shop", "--yes")
        #expect(removed["users"] == 2 && removed["state"] == "removed")
        #expect(try await !phone.isKnown())
        #expect(try await fixture.result(challenge).status == 401)
        for table in ["user", "device", "challenge", "website_key", "factor", "outbox"] {
            #expect(try fixture.relay.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
        #expect(
            try fixture.relay.count(
                "SELECT count(*) FROM audit WHERE event = 'challenge.ended' OR event = 'user.forgotten'") >= 2)
        #expect(try fixture.trail("website.removed", outcome: "operator") == 1)
        for command in ["show", "renew", "enable", "disable", "edit", "remove"] {
            let arguments = ["website", command, "shop"] + (command == "edit" ? ["--number", "6"] : [])
            try await fixture.refused(arguments, 3, "the website shop is removed")
        }
        #expect(try await fixture.json("website", "list")["websites"] == [])
        let listed = try await fixture.json("website", "list", "--removed")["websites"]?.array
        #expect(listed?.first?.object?["website"] == "shop")

        // The name comes back only if it is asked for, and without the former users.
        try await fixture.refused(
            ["website", "add", "shop", "--out", fixture.relay.installation], 4, "there was a website shop")
        let added = try await fixture.json(
            "website", "add", "shop", "--reuse-name", "--out", fixture.relay.installation)
        let again = try Self.caller(fixture, added)
        #expect(try await again.curl("GET", "/user/ada").status == 404)
        #expect(try await fixture.shop.curl("GET", "/user/ada").status == 401)
    }

    @Test func revokedKeyIsOnTheListOfTheWebsitesAuthority() async throws {
        let installed = try await Installed()
        func website(_ arguments: String...) async throws -> JSONObject {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json", "website"] + arguments)
            try #require(ended.status == 0, "\(ended.errors)")
            return try ended.json
        }
        _ = try await website("add", "shop", "--out", installed.directory.path)
        let list = installed.directory("relay/website-crl.pem")
        #expect(try await website("crl", "--days", "10")["path"]?.string == list)
        var settings = try text(installed.settings)
        try settings.set("tls.revoked", to: "website-crl.pem")
        try TextFile.write(settings, to: installed.settings)
        let key = try #require(try await website("show", "shop")["keys"]?.array?.first?.object)
        let serial = try #require(key["serial"]?.string)
        let authority = installed.directory("relay/website-ca.pem")
        func verified() async throws -> Child.Ended {
            try await Child.run(
                "openssl",
                ["verify", "-crl_check", "-CAfile", authority, "-CRLfile", list, installed.directory("shop.pem")])
        }
        #expect(try await verified().status == 0)
        let revoked = try await website("revoke-key", "shop", "--all", "--yes")
        #expect(revoked["list"]?.object?["count"] == 1)
        #expect(try await verified().errors.contains("certificate revoked"))
        // A list that is made anew has the entries of the former one.
        #expect(try await website("crl")["count"] == 1)
        let shown = try await Child.run("openssl", ["crl", "-in", list, "-noout", "-text"])
        #expect(shown.output.lowercased().contains("serial number: \(serial)"), "\(shown.output)")
        let check = try await Child.run(try BuiltProgram.twoefayd.path, ["--config", installed.settings, "--check"])
        #expect(check.status == 0, "\(check.errors)")
    }

    /// The list of an authority goes with it, because relays refuse a list that they cannot check.
    @Test func formerAuthorityTakesItsListWithIt() async throws {
        let installed = try await Installed()
        func check() async throws {
            let ended = try await Child.run(
                try BuiltProgram.twoefayd.path, ["--config", installed.settings, "--check"])
            #expect(ended.status == 0, "\(ended.errors)")
        }
        _ = try await installed.tool("website", "add", "shop", "--out", installed.directory.path)
        _ = try await installed.tool("website", "crl", "--reason", "ticket 12")
        var settings = try text(installed.settings)
        try settings.set("tls.revoked", to: "website-crl.pem")
        try TextFile.write(settings, to: installed.settings)
        _ = try await installed.tool("website", "revoke-key", "shop", "--all", "--yes")
        _ = try await installed.tool("authority", "replace", "websites")
        _ = try await installed.tool("website", "renew", "shop", "--out", installed.directory.path)
        #expect(try await installed.tool("website", "crl")["count"] == 0)
        try await check()
        func lists() throws -> Int {
            try text(installed.directory("relay/website-crl.pem")).split(separator: "\n")
                .count { $0 == "-----BEGIN X509 CRL-----" }
        }
        #expect(try lists() == 2)
        let finished = try await installed.tool("authority", "finish", "websites", "--yes")
        #expect(finished["list"]?.object?["count"] == 0, "\(finished)")
        #expect(try lists() == 1)
        try await check()
        let rows = try await installed.tool("audit", "search", "--event", "website.crl_written")["rows"]?.array
        #expect(rows?.count == 2, "\(String(describing: rows))")
        #expect(rows?.compactMap { $0.object?["reason"]?.string } == ["ticket 12"])
    }

    @Test func keysOfARemovedWebsiteAreOnTheList() async throws {
        let installed = try await Installed()
        func tool(_ arguments: String...) async throws -> JSONObject {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json", "website"] + arguments)
            try #require(ended.status == 0, "\(ended.errors)")
            return try ended.json
        }
        _ = try await tool("add", "shop", "--out", installed.directory.path)
        _ = try await tool("renew", "shop", "--out", installed.directory.path)
        let list = try #require(try await tool("crl", "--days", "10")["path"]?.string)
        var settings = try text(installed.settings)
        try settings.set("tls.revoked", to: "website-crl.pem")
        try TextFile.write(settings, to: installed.settings)
        #expect(try await tool("remove", "shop", "--yes")["list"]?.object?["count"] == 2)
        let verified = try await Child.run(
            "openssl",
            [
                "verify", "-crl_check", "-CAfile", installed.directory("relay/website-ca.pem"), "-CRLfile", list,
                installed.directory("shop.pem"),
            ])
        #expect(verified.errors.contains("certificate revoked"), "\(verified.errors)")
    }

    @Test func websiteOfADirectoryIsNotRemoved() async throws {
        let installed = try await Installed()
        _ = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        try TextFile.write("name,mail\n", to: installed.directory("relay/staff.csv"))
        try TextFile.write(
            try text(installed.settings)
                + "\ndirectories:\n  - name: staff\n    website: shop\n    kind: csv\n    file: staff.csv\n",
            to: installed.settings)
        let refused = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "remove", "shop", "--yes")
        #expect(refused.status == 4, "\(refused.errors)")
        #expect(refused.errors.contains("come from the directory staff"), "\(refused.errors)")
    }
}
