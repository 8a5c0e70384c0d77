import Glibc
import JSON
import TestSupport
import Testing

/// Logins of users whom the running relay takes from a real slapd.
@Suite("Users from a directory", .timeLimit(.minutes(15)), .mayBlock, .enabled(if: Slapd.canRun))
struct DirectoryLoginTests {
    /// Returns the settings of a directory that is synced every second.
    private static func settings(_ slapd: Slapd, url: String, authority: String, password: String) -> String {
        """

        directories:
          - name: staff
            website: shop
            kind: ldap
            url: \(url)
            ca: \(authority)
            bind_dn: \(Slapd.admin)
            password_file: \(password)
            base: \(Slapd.suffix)
            interval: 1

        """
    }

    /// The daemon reads the directory under its Landlock and seccomp rules.
    @Test(arguments: [StoreKind.file, .mariadb]) func relaySyncsByItself(kind: StoreKind) async throws {
        let slapd = try await Slapd()
        try await slapd.add("ada", [("mail", "ada@example.org")])
        try await slapd.add("bob", [("mail", "bob@example.org")])
        let password = slapd.directory("password")
        try TextFile.write(Slapd.password, to: password)
        let relay = try await RunningRelay.start(kind) { text in
            text += Self.settings(slapd, url: slapd.secureURL, authority: slapd.authority, password: password)
        }
        // The first syncs fail, because the website does not exist yet.
        let failed = try await relay.logged("event=directory.failed")
        #expect(failed.contains("level=error") && failed.contains("there is no website shop"), "\(failed)")
        let shop = try await relay.website("shop")
        let synced = try await relay.logged("event=directory.synced")
        #expect(
            synced.contains("name=staff website=shop users=2 added=2 changed=0 disabled=0 conflicts=0"), "\(synced)")
        #expect(!relay.log.contains("ada"))

        let asked = try await shop.curl("POST", "/login", json: #"{"username":"ada"}"#)
        #expect(asked.status == 201, "\(asked)")
        try await slapd.delete("ada")
        _ = try await relay.logged("disabled=1")
        let challenge = try #require(asked["challenge"]?.string)
        let told = try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
        #expect(told["login"]?.string == "failure")
        let user = try await shop.curl("GET", "/user/ada")
        #expect(user["state"]?.string == "disabled", "\(user)")
        let unlocked = try await shop.curl("POST", "/user/ada/unlock", json: "{}")
        #expect(unlocked.status == 403, "\(unlocked)")

        await slapd.stop()
        let lost = try await relay.logged("cannot connect")
        #expect(lost.contains("event=directory.failed"))
        #expect(try await shop.curl("GET", "/user/bob")["state"]?.string == "active")
        let status = try await Child.run(try BuiltProgram.twoefay.path, ["--config", relay.settings, "status"])
        #expect(status.output.contains("Directory staff: last synced at "), "\(status.output)")
        #expect(status.output.contains("failed: the directory staff"), "\(status.output)")
    }

    @Test func reloadTakesNewDirectories() async throws {
        let slapd = try await Slapd()
        try await slapd.add("ada")
        let relay = try await RunningRelay.start(.file)
        _ = try await relay.website("shop")
        // The process may open files beside its settings, and no others that became known later.
        try TextFile.write(try TextFile.bytes(slapd.authority), to: relay.file("ldap-ca.pem"))
        try TextFile.write(Slapd.password, to: relay.file("ldap.password"))
        let settings = Self.settings(
            slapd, url: slapd.secureURL, authority: "ldap-ca.pem", password: "ldap.password")
        try TextFile.write(try TextFile.read(relay.settings) + settings, to: relay.settings)
        relay.signal(SIGHUP)
        _ = try await relay.logged("event=daemon.reloaded")
        _ = try await relay.logged("users=1 added=1")
        #expect(!relay.log.contains("event=daemon.restart"))
    }
}
