import Glibc
import JSON
import TestSupport
import Testing

@Suite("Both programs", .timeLimit(.minutes(15)), .mayBlock) struct SettingsErrorTests {
    @Test func missingSettingsNameTheNextStep() async throws {
        let daemon = try await BuiltProgram.twoefayd()
        #expect(daemon.status == 2)
        #expect(daemon.errors.contains("twoefay init DIR"))
        let tool = try await BuiltProgram.twoefay("website", "list")
        #expect(tool.status == 2)
        #expect(tool.errors.contains("twoefay init DIR"))
        let missing = try await BuiltProgram.twoefayd("--config", "/nowhere/twoefay.yaml", "--json")
        #expect(missing.status == 3)
        #expect(try missing.json["error"]?.object?["code"]?.string == "not_found")
    }

    @Test func helpExplainsThePrograms() async throws {
        #expect(try await BuiltProgram.twoefay().output.contains("website add NAME"))
        #expect(try await BuiltProgram.twoefay("website", "add", "--help").output.contains("--answers VALUE"))
        #expect(try await BuiltProgram.twoefayd("--help").output.contains("--check"))
        #expect(try await BuiltProgram.twoefay("--version").output == BuiltProgram.twoefayd("--version").output)
        let misspelt = try await BuiltProgram.twoefay("webiste", "list")
        #expect(misspelt.status == 2)
        #expect(misspelt.errors.contains("did you mean website?"))
    }

    @Test func everySettingsFaultIsReportedWithItsPosition() async throws {
        let installed = try await Installed()
        _ = try await Child.run(
            "sh", ["-c", "printf 'lissten: 1\\nloops: x\\n' >> twoefay.yaml"], in: installed.directory("relay"))
        let lines = try text(installed.settings).split(separator: "\n", omittingEmptySubsequences: false).count
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.status == 1)
        #expect(checked.errors.contains("twoefay.yaml:\(lines - 2):1: lissten is not a setting; did you mean listen?"))
        #expect(checked.errors.contains("twoefay.yaml:\(lines - 1):8: loops must be a whole number"))
    }

    @Test func everyFaultyFileIsNamed() async throws {
        let installed = try await Installed()
        let relay = installed.directory("relay")
        let spoil = "chmod 644 server.key; rm ca.pem; echo x > master.key; cp website-ca.key device-ca.key"
        _ = try await Child.run("sh", ["-c", spoil], in: relay)
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.status == 1)
        for part in [
            "server.key: can be read by others", "ca.pem: No such file",
            "master.key: line 1 must be 64 hexadecimal digits",
            "device-ca.key: the authority's key does not match its certificate",
        ] {
            #expect(checked.errors.contains(part), "\(part) is not in \(checked.errors)")
        }
    }

    @Test func mismatchedServerKeyIsRefused() async throws {
        let installed = try await Installed()
        _ = try await Child.run("sh", ["-c", "cp ca.key server.key"], in: installed.directory("relay"))
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.status == 1)
        #expect(checked.errors.contains("server.key: is not the key of"))
    }

    @Test func checkReadsTheGeoDatabase() async throws {
        let installed = try await Installed()
        var settings = try text(installed.settings)
        try settings.set("geo.database", to: "places.mmdb")
        try TextFile.write(settings, to: installed.settings)
        let missing = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(missing.status == 1)
        #expect(missing.errors.contains("relay/places.mmdb: No such file"), "\(missing.errors)")

        var networks = MaxMindFile(kind: "GeoLite2-ASN")
        networks.add("192.0.2.0/24", .map([("autonomous_system_number", .number32(64_496))]))
        try networks.write(to: installed.directory("relay/places.mmdb"))
        let useless = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(useless.status == 1)
        #expect(useless.errors.contains("it is GeoLite2-ASN"), "\(useless.errors)")

        var cities = MaxMindFile(kind: "GeoLite2-City")
        cities.madeAt = 1_790_000_000
        cities.add("192.0.2.0/24", .place(city: "Graz", country: "Austria"))
        try cities.write(to: installed.directory("relay/places.mmdb"))
        let good = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(good.status == 0, "\(good.errors)")
        #expect(good.output.contains("The geolocation database is GeoLite2-City, created at 2026-09-21T14:13:20.000Z."))
        let json = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json").json
        #expect(json["places"]?.object?["kind"] == "GeoLite2-City")
        #expect(json["places"]?.object?["made_at"] == "2026-09-21T14:13:20.000Z")
    }

    @Test func checkReadsTheVAPIDKey() async throws {
        let installed = try await Installed()
        let off = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json").json
        #expect(off["web_push"] == false)
        var settings = try text(installed.settings)
        try settings.set("push.web.key", to: "vapid.key")
        try TextFile.write(settings, to: installed.settings)
        let good = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(good.status == 0, "\(good.errors)")
        #expect(good.output.contains("Web Push is on"))
        #expect(!good.output.contains("No push service is set"))
        let on = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json").json
        #expect(on["web_push"] == true)

        try TextFile.write("no key", to: installed.directory("relay/vapid.key"))
        let bad = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(bad.status == 1)
        #expect(bad.errors.contains("relay/vapid.key: reading a private key"), "\(bad.errors)")
        _ = try await Child.run("rm", [installed.directory("relay/vapid.key")])
        let missing = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(missing.errors.contains("relay/vapid.key: No such file"), "\(missing.errors)")
    }

    @Test func serverCertificateWithoutThePinnedAuthorityIsRefused() async throws {
        let installed = try await Installed()
        let alone = "openssl x509 -in server.pem -out alone.pem && mv alone.pem server.pem"
        try #require(try await Child.run("sh", ["-c", alone], in: installed.directory("relay")).status == 0)
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.status == 1)
        #expect(checked.errors.contains("ca.pem, whose key phones pin; append it"), "\(checked.errors)")
    }

    /// The settings file may be shared, because its secrets are usually in files of their own.
    @Test func passwordThatOthersCanReadIsNamed() async throws {
        let server = try await blocking { try MariaDBServer.shared() }
        let url = server.url(try await blocking { try server.freshDatabase() })
        let installed = try await Installed("--storage", url)
        let before = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(before.status == 0 && !before.output.contains("password"), "\(before.output) \(before.errors)")
        var settings = try text(installed.settings)
        // An account without a password accepts none, so the check of the store then fails, too.
        try settings.set("storage", to: url.replacing("@", with: ":secret@", maxReplacements: 1))
        try TextFile.write(settings, to: installed.settings)
        _ = try await Child.run("chmod", ["644", installed.settings])
        let denied = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(denied.status == 5, "\(denied.errors)")
        #expect(denied.errors.contains("the store cannot be used: mariadb://"), "\(denied.errors)")
        #expect(denied.errors.contains("Access denied") && denied.errors.contains("account or password"))
        #expect(!denied.errors.contains("secret"))
        // The store that fails hides no warning.
        let warning = "\(installed.settings): others can read the password in storage"
        #expect(denied.errors.contains("\nWarning: \(warning)"), "\(denied.errors)")
        let json = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json").json
        #expect(json["error"]?.object?["message"]?.string?.contains(warning) == true, "\(json)")
        let relay = try await BuiltProgram.twoefayd("--config", installed.settings)
        #expect(relay.errors.contains("event=settings.exposed"), "\(relay.errors)")
    }

    @Test func checkNamesFilesAndWebsitesOfDirectories() async throws {
        let installed = try await Installed()
        _ = try await installed.tool("website", "add", "shop", "--out", installed.directory.path)
        func warnings(_ website: String, _ file: String) async throws -> [String] {
            var settings = try text(installed.settings)
            try settings.set("directories", to: "[{name: partners, website: \(website), kind: csv, file: \(file)}]")
            try TextFile.write(settings, to: installed.settings)
            let json = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json").json
            return json["warnings"]?.array?.compactMap(\.string) ?? ["no list: \(json)"]
        }
        let both = try await warnings("nosuch", "nofile.csv")
        #expect(both.count == 2, "\(both)")
        #expect(both.contains { $0.contains("relay/nofile.csv: No such file") }, "\(both)")
        #expect(both.contains { $0.hasPrefix("\(installed.settings):") }, "\(both)")
        #expect(both.contains { $0.contains("partners: the store has no website nosuch") }, "\(both)")
        try TextFile.write("id,username\n", to: installed.directory("relay/partners.csv"))
        #expect(try await warnings("shop", "partners.csv") == [])
        // Beside a fault, the warnings are named, too.
        _ = try await Child.run("rm", [installed.directory("relay/partners.csv"), installed.directory("relay/ca.pem")])
        let faulty = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(faulty.status == 1 && faulty.errors.contains("relay/ca.pem: No such file"), "\(faulty.errors)")
        #expect(faulty.errors.contains("\nWarning: ") && faulty.errors.contains("partners.csv: No such"))
    }

    @Test func missingStoreIsDistinguishedFromABrokenOne() async throws {
        let installed = try await Installed()
        _ = try await Child.run("sh", ["-c", "rm twoefay.db*"], in: installed.directory("relay"))
        #expect(try await BuiltProgram.twoefay("--config", installed.settings, "website", "list").status == 3)
        let migrated = try await BuiltProgram.twoefay("--config", installed.settings, "migrate", "--json")
        #expect(migrated.status == 0, "\(migrated.errors)")
        #expect(try migrated.json["schema_version"]?.integer != nil)
        let other = try await BuiltProgram.twoefay(
            "--config", installed.settings, "migrate", "--storage", "sqlite:other.db", "--json")
        #expect(other.status == 0, "\(other.errors)")
        #expect(try other.json["storage"]?.string?.hasSuffix("relay/other.db") == true)
        let malformed = try await BuiltProgram.twoefay(
            "--config", installed.settings, "migrate", "--storage", "other.db")
        #expect(malformed.status == 2 && malformed.errors.contains("--storage: "), "\(malformed.errors)")
        #expect(try await BuiltProgram.twoefay("--config", installed.settings, "website", "list").status == 0)
        _ = try await Child.run(
            "sh", ["-c", "echo this is no database > twoefay.db"], in: installed.directory("relay"))
        let broken = try await BuiltProgram.twoefay("--config", installed.settings, "website", "list")
        #expect([1, 5].contains(broken.status))
        #expect(broken.errors.contains("twoefay.db"))
    }
}
