import JSON
import TestSupport
import Testing

@Suite("twoefay website", .timeLimit(.minutes(15)), .mayBlock) struct WebsiteCommandTests {
    @Test func websiteAddWritesACertificateOfTheWebsiteAuthority() async throws {
        let installed = try await Installed()
        let added = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path, "--json")
        #expect(added.status == 0, "\(added.errors)")
        #expect(try added.json["certificate"]?.string == installed.directory("shop.pem"))
        #expect(TemporaryDirectory.mode(of: installed.directory("shop.key")) == 0o600)
        let verified = try await Child.run(
            "openssl",
            [
                "verify", "-purpose", "sslclient", "-CAfile", installed.directory("relay/website-ca.pem"),
                installed.directory("shop.pem"),
            ])
        #expect(verified.status == 0, "\(verified.errors)")
        let shown = try await Child.run(
            "openssl", ["x509", "-in", installed.directory("shop.pem"), "-noout", "-ext", "subjectAltName"])
        #expect(shown.output.contains("URI:twoefay:website:shop\n"))
        let ofCertificate = try await Child.run(
            "openssl", ["x509", "-in", installed.directory("shop.pem"), "-noout", "-pubkey"])
        let ofKey = try await Child.run("openssl", ["pkey", "-in", installed.directory("shop.key"), "-pubout"])
        #expect(ofKey.output.hasPrefix("-----BEGIN PUBLIC KEY-----"))
        #expect(ofKey.output == ofCertificate.output)
    }

    @Test func websiteListShowsTheGivenPolicies() async throws {
        let installed = try await Installed()
        let empty = try await BuiltProgram.twoefay("--config", installed.settings, "website", "list")
        #expect(empty.output.contains("no website yet"))
        for name in ["shop", "bank"] {
            let added = try await BuiltProgram.twoefay(
                "website", "add", name, "--config", installed.settings, "--out", installed.directory.path,
                "--display-name", "The \(name)", "--webhook", "https://\(name).example.com/hook?a=b", "--answers",
                "website", "--lifetime", "120")
            #expect(added.status == 0, "\(added.errors)")
        }
        let list = try await BuiltProgram.twoefay("--config", installed.settings, "website", "list", "--json")
        let websites = try #require(try list.json["websites"]?.array)
        #expect(websites.map { $0.object?["website"]?.string } == ["bank", "shop"])
        let bank = try #require(websites.first?.object)
        #expect(bank["display_name"]?.string == "The bank")
        #expect(bank["webhook"]?.string == "https://bank.example.com/hook?a=b")
        #expect(bank["state"]?.string == "active")
        #expect(bank["policies"]?.object == ["answers": "website", "lifetime": "120"])
        let shown = try await BuiltProgram.twoefay("--config", installed.settings, "website", "list")
        #expect(shown.output.contains("answers=website lifetime=120"))
    }

    @Test func websiteKeyIsRevokedOnce() async throws {
        let installed = try await Installed()
        func website(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json", "website"] + arguments)
        }
        _ = try await website("add", "shop", "--out", installed.directory.path)
        let keys = try await website("show", "shop").json["keys"]?.array
        let key = try #require(keys?.first?.object?["thumbprint"]?.string)
        #expect(keys?.count == 1)
        #expect(try await website("revoke-key", "shop").status == 2)
        #expect(try await website("revoke-key", "shop", "--all", key).status == 2)
        #expect(try await website("revoke-key", "shop", "abc").status == 2)
        let unknown = String(repeating: "0", count: 64)
        #expect(try await website("revoke-key", "shop", unknown).status == 3)
        _ = try await website("renew", "shop", "--out", installed.directory.path)
        let all = try await website("show", "shop").json["keys"]?.array
        let other = try #require(all?.compactMap { $0.object?["thumbprint"]?.string }.first { $0 != key })
        #expect(try await website("revoke-key", "shop", key, unknown).status == 3)
        let asked = try await website("revoke-key", "shop", key)
        #expect(asked.status == 2 && asked.errors.contains("1 of 2 keys of shop are refused for good"), "\(asked)")
        let revoked = try await website("revoke-key", "shop", key, other, key, "--yes").json
        #expect(revoked["revoked"]?.array?.count == 2 && revoked["left"] == 0, "\(revoked)")
        #expect(try await website("revoke-key", "shop", "--all").status == 3)
        #expect(try await website("show", "shop").json["keys"] == [])
        #expect(try await website("disable", "shop").json["state"] == "disabled")
        #expect(try await website("disable", "shop").status == 4)
        #expect(try await website("enable", "shop").json["before"] == "disabled")
    }

    @Test func websiteNameIsNeverReused() async throws {
        let installed = try await Installed()
        _ = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        let same = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        #expect(same.status == 4)
        #expect(same.errors.contains("shop.key: File exists"))
        let elsewhere = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory("relay"))
        #expect(elsewhere.status == 4)
        #expect(elsewhere.errors.contains("there is or was a website shop"))
        #expect(!TemporaryDirectory.names(in: installed.directory("relay")).contains("shop.key"))
    }

    @Test(
        arguments: [
            (["Shop"], "NAME must be"), (["../shop"], "NAME must be"), ([""], "NAME must be"),
            (["shop", "--webhook", "http://shop.example.com"], "--webhook must be"),
            (["shop", "--webhook", "https://u:p@shop.example.com"], "--webhook must be"),
            (["shop", "--webhook", "https:///x"], "--webhook must be"),
            (["shop", "--answers", "trusted"], "--answers must be one of signed, certificate, website"),
            (["shop", "--lifetime", "10"], "--lifetime must be a whole number from 60 to 600"),
            (["shop", "--display-name", "a\u{202e}b"], "--display-name must not contain"),
        ])
    func invalidWebsiteAddIsRefused(arguments: [String], message: String) async throws {
        let installed = try await Installed()
        let refused = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "website", "add"] + arguments,
            in: installed.directory.path)
        #expect(refused.status == 2)
        #expect(refused.errors.contains(message), "\(refused.errors)")
        #expect(installed.directory.names == ["relay"])
    }
}
