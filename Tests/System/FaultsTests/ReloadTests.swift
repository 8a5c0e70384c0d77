import Bytes
import Crypto
import FakePushServices
import Glibc
import HTTP2
import JSON
import TestSupport
import Testing
import World

/// SIGHUP reloads certificates for new connections, and leaves open ones alone.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ReloadTests {
    @Test func reloadedCertificateIsShownToNewConnections() async throws {
        let fixture = try await Fixture.start()
        let line = try await fixture.shop.line()
        let before = try await shown(fixture.relay)
        let renewed = try fixture.relay.renewCertificate().serial
        #expect(renewed != before)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        #expect(try await shown(fixture.relay) == renewed)
        #expect(try await line.send("GET", "/user/nobody").get().status == 404)
        #expect(await line.state == .open)
        // The reload has kept the check of client certificates.
        #expect(try await fixture.shop.line().send("GET", "/user/nobody").get().status == 404)
    }

    @Test(arguments: ["server.pem", "server.key", "website-ca.pem", "device-ca.pem", "master.key"])
    func corruptFileChangesNothingOnReload(_ name: String) async throws {
        let fixture = try await Fixture.start()
        let line = try await fixture.shop.line()
        let before = try await shown(fixture.relay)
        let good = try TextFile.read(fixture.relay.file(name))
        try fixture.relay.renewCertificate()
        try TextFile.write(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", to: fixture.relay.file(name))
        fixture.relay.signal(SIGHUP)
        let logged = try await fixture.relay.logged("event=daemon.reload ")
        #expect(logged.contains("level=error"))
        #expect(logged.contains(name))
        #expect(try await shown(fixture.relay) == before)
        #expect(try await line.send("GET", "/user/nobody").get().status == 404)
        #expect(try await fixture.shop.line().send("GET", "/user/nobody").get().status == 404)
        // After the repair the reload succeeds as usual.
        let renewed =
            name.hasPrefix("server")
            ? try fixture.relay.renewCertificate().serial : try serial(fixture.relay.file("server.pem"))
        if !name.hasPrefix("server") { try TextFile.write(good, to: fixture.relay.file(name)) }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        #expect(try await shown(fixture.relay) == renewed)
    }

    /// A key that the push service does not know, one that cannot be read, and the right one.
    @Test func reloadedPushKeyIsUsedForLaterPushes() async throws {
        let apple = try await TestAPNs.start()
        let directory = try TemporaryDirectory()
        let (file, wrong) = (directory("AuthKey.p8"), try P256PrivateKey.generate(SystemRandomness()))
        try TextFile.write(try wrong.pem().reveal(), to: file)
        let fixture = try await Fixture.start(apple: apple) { settings in
            try settings.set("push.apns.key", to: file)
            try settings.set("push.apns.key_id", to: "OTHERKEY12")
        }
        let (token, phone) = try await fixture.enrol("anna")
        let refused = try await fixture.login(token)
        let line = try await fixture.relay.logged("event=push.undeliverable challenge=\(refused.challenge)")
        #expect(line.contains("level=error") && line.contains("InvalidProviderToken"), "\(line)")

        // A fault in the settings is logged too, and changes nothing.
        var settings = try TextFile.read(fixture.relay.file("twoefay.yaml"))
        let before = settings
        try settings.set("push.apns.key_id", to: apple.keyID)
        try TextFile.write("\(settings)\nnonsense: 1\n", to: fixture.relay.file("twoefay.yaml"))
        fixture.relay.signal(SIGHUP)
        #expect(try await fixture.relay.logged("event=daemon.reload ").contains("nonsense"))
        try TextFile.write(before, to: fixture.relay.file("twoefay.yaml"))
        try TextFile.write("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", to: file)
        fixture.relay.signal(SIGHUP)
        let corrupt = try await fixture.relay.logged("event=daemon.reload ", number: 2)
        #expect(corrupt.contains("level=error") && corrupt.contains("AuthKey.p8"), "\(corrupt)")

        try TextFile.write(settings, to: fixture.relay.file("twoefay.yaml"))
        try TextFile.write(try apple.key.pem().reveal(), to: file)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        let login = try await fixture.login(token)
        #expect(try await apple.service.next().challenge == login.challenge)
        try await fixture.finish(login, by: phone)
    }

    /// Proxies and policies decide about logins.
    @Test func changesOfAReloadAreInLogAndAudit() async throws {
        let fixture = try await Fixture.start()
        let before = try TextFile.bytes(fixture.relay.file("server.pem"))
        try fixture.relay.renewCertificate()
        let after = try TextFile.bytes(fixture.relay.file("server.pem"))
        try fixture.relay.change { settings in
            try settings.set("proxies", to: "192.0.2.7")
            try settings.set("policies.lifetime", to: "201")
            try settings.set("loops", to: "7")
        }
        fixture.relay.signal(SIGHUP)
        let line = try await fixture.relay.logged("event=daemon.reloaded")
        #expect(line.contains("proxies, policies.lifetime") && line.contains("server.pem"), "\(line)")
        #expect(!line.contains("loops"), "\(line)")
        let output = try await fixture.relay.tool("audit", "search", "--event", "daemon.reloaded", "--json")
        let rows = try #require(try JSONReader.read(Array(output.utf8)).object?["rows"]?.array)
        let changes = try #require(rows.last?.object?["changes"]?.object, "\(output)")
        #expect(changes["proxies"]?.object?["before"] == .null, "\(changes)")
        #expect(changes["proxies"]?.object?["after"] == "192.0.2.7/32", "\(changes)")
        #expect(changes["policies.lifetime"]?.object?["after"] == "201", "\(changes)")
        let hashes = [before, after].map { JSONValue.string("SHA-256 \(Hex.encode(SHA256.hash($0)))") }
        let server = changes["server.pem"]?.object
        #expect(server?["before"] == hashes[0] && server?["after"] == hashes[1], "\(changes)")
        #expect(changes["loops"] == nil && changes["website-ca.pem"] == nil, "\(changes)")
    }

    /// Signals that have a meaning for other daemons do not end this one.
    @Test func otherSignalsAreIgnored() async throws {
        let fixture = try await Fixture.start()
        for number in [SIGUSR1, SIGUSR2] { fixture.relay.signal(number) }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        let (token, phone) = try await fixture.enrol("anna")
        try await fixture.finish(try await fixture.login(token), by: phone)
    }

    @Test func policiesAndLogLevelAreReloaded() async throws {
        let fixture = try await Fixture.start()
        let (token, phone) = try await fixture.enrol("anna")
        let before = try await fixture.login(token)
        try fixture.relay.change { settings in
            try settings.set("policies.lifetime", to: "201")
            try settings.set("log.level", to: "debug")
        }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        // The open login keeps its policies.
        try await fixture.finish(before, by: phone)
        let lifetime = "SELECT count(*) FROM challenge WHERE policy LIKE '%\"lifetime\":\"201\"%'"
        #expect(try fixture.relay.count(lifetime) == 0)
        let after = try await fixture.login(token)
        #expect(try fixture.relay.count(lifetime) == 1)
        try await fixture.finish(after, by: phone)
        try await fixture.relay.logged("level=debug")
        #expect(!fixture.relay.log.contains("event=daemon.restart"))
    }

    /// A setting that waits for the next start is checked as well, because nobody may be there
    /// then.
    @Test func settingsWithWhichTheNextStartWouldFailAreRefused() async throws {
        let fixture = try await Fixture.start()
        let before = try TextFile.read(fixture.relay.settings)
        try fixture.relay.change { settings in
            try settings.set("tls.revoked", to: "ca.pem")
            try settings.set("policies.lifetime", to: "201")
        }
        fixture.relay.signal(SIGHUP)
        let refused = try await fixture.relay.logged("event=daemon.reload ")
        #expect(refused.contains("holds no revocation list"), "\(refused)")
        // Several faults are one line in the audit, which is a table.
        try fixture.relay.change { try $0.set("tls.pins", to: "website-ca.pem") }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reload ", number: 2)
        let tail = try await fixture.relay.tool("audit", "tail", "--count", "1")
        let last = tail.split(separator: "\n").last ?? ""
        #expect(last.contains("daemon.reload") && last.contains("holds no statement"), "\(tail)")
        #expect(last.contains("holds no revocation list"), "\(tail)")
        try fixture.relay.change { try $0.set("tls.pins", to: "") }
        let (token, phone) = try await fixture.enrol("anna")
        try await fixture.finish(try await fixture.login(token), by: phone)
        #expect(
            try fixture.relay.count("SELECT count(*) FROM challenge WHERE policy LIKE '%\"lifetime\":\"201\"%'") == 0)
        // A reload is refused, too, for a setting that only the next start would use.
        for (number, (key, value)) in [("storage", "mariadb://twoefay@db"), ("listen", "localhost:1")].enumerated() {
            try TextFile.write(before, to: fixture.relay.settings)
            try fixture.relay.change { settings in
                try settings.set(key, to: value)
                try settings.set("policies.lifetime", to: "201")
            }
            fixture.relay.signal(SIGHUP)
            let refused = try await fixture.relay.logged("event=daemon.reload ", number: number + 3)
            #expect(refused.contains(key) || refused.contains("mariadb://"), "\(refused)")
        }
        // A valid one is named.
        try TextFile.write(before, to: fixture.relay.settings)
        try fixture.relay.change { settings in try settings.set("loops", to: "7") }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        #expect(fixture.relay.log.contains("event=daemon.restart setting=loops path="))
    }

    /// Otherwise phones would not accept the relay any more.
    @Test func pinnedAuthorityCannotChangeOnReload() async throws {
        let fixture = try await Fixture.start()
        let before = try await shown(fixture.relay)
        let other = try CertificateAuthority.create(commonName: "another", days: 90, at: SystemTime().now())
        try TextFile.write(try other.certificatePEM(), to: fixture.relay.file("ca.pem"))
        try TextFile.write(try other.keyPEM().reveal(), to: fixture.relay.file("ca.key"))
        // At first the presented chain does not lead to the new authority, and then it does.
        for (number, reason) in ["append it", "has a new key"].enumerated() {
            fixture.relay.signal(SIGHUP)
            let logged = try await fixture.relay.logged("event=daemon.reload ", number: number + 1)
            #expect(logged.contains(reason), "\(logged)")
            #expect(try await shown(fixture.relay) == before)
            try fixture.relay.renewCertificate()
        }
    }

    private func serial(_ path: String) throws -> String { try Certificate(pem: try TextFile.bytes(path)).serial }

    /// Returns the serial of the certificate that new clients get.
    private func shown(_ relay: RunningRelay) async throws -> String {
        let seen = try await Child.run(
            "openssl", ["s_client", "-connect", "127.0.0.1:\(relay.port)", "-alpn", "h2", "-showcerts"])
        return try Certificate(pem: Array(seen.output.utf8)).serial
    }
}
