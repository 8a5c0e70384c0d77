import Bytes
import Crypto
import FakePushServices
import Glibc
import TestSupport
import Testing
import World

/// Reloads of good and bad files of every kind while users log in: no login fails, and no connection
/// is dropped.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ReloadUnderLoadTests {
    /// Runs the steps of a test beside logins, and checks afterwards that none has failed.
    private func underLoad(
        _ fixture: Fixture, _ steps: (ReloadedInstallation) async throws -> Void
    ) async throws {
        let load = try await LoginLoad(fixture, lanes: 3, users: 4)
        let installation = ReloadedInstallation(fixture.relay, load)
        async let running: Void = load.run()
        do {
            await load.logins(3)
            try await steps(installation)
            await load.logins(6)
        } catch {
            load.stop()
            throw error
        }
        load.stop()
        await running
        #expect(load.failures == [] && load.count > 0)
        #expect(await load.ended == 0)
        #expect(installation.errors == [])
    }

    private static func template(_ text: String) -> String {
        """
        msgid ""
        msgstr ""
        "Content-Type: text/plain; charset=UTF-8\\n"
        "Plural-Forms: nplurals=2; plural=(n > 1);\\n"

        msgctxt "mail.login.subject"
        msgid "Your login code for {website}"
        msgstr "\(text)"

        msgctxt "mail.login.text"
        msgid "Your code is {code}."
        msgstr "Votre code est {code}."

        """
    }

    @Test func certificatesAndKeysAreReloadedUnderLoad() async throws {
        let fixture = try await Fixture.start()
        try await underLoad(fixture) { files in
            try await serverCertificates(files)
            try await authorities(files)
            try await revocationLists(files)
            try await pins(files)
            try await masterKeys(files)
        }
    }

    private func serverCertificates(_ files: ReloadedInstallation) async throws {
        try await files.takes { try files.issueServer() }
        try await files.refuses("server.pem", "server.pem") { try files.write("server.pem", SpoiltFile.certificate) }
        try await files.refuses("expired at", "server.pem", "server.key") { try files.issueServer(days: 1, age: 3) }
        try await files.refuses("the host of the origin", "server.pem", "server.key") {
            try files.issueServer(["login.example.net"])
        }
        try await files.refuses("is not the key of", "server.key") {
            try files.write("server.key", try files.bytes("website-ca.key"))
        }
        try await files.refuses("server.key: can be read by others", "server.key") {
            chmod(files.relay.file("server.key"), 0o644)
        }
        try await files.refuses("append it", "server.pem") {
            let certificate = try Certificate(pem: try files.bytes("server.pem"))
            try files.write("server.pem", try certificate.pem())
        }
        // The same files under other names are taken, too.
        try await files.takes {
            try files.write("renewed.pem", try files.bytes("server.pem"))
            try files.write("renewed.key", try files.bytes("server.key"))
            try files.set("tls.certificate", to: "renewed.pem")
            try files.set("tls.key", to: "renewed.key")
        }
    }

    private func authorities(_ files: ReloadedInstallation) async throws {
        let other = try CertificateAuthority.create(commonName: "another", days: 90, at: SystemTime().now())
        for name in ["ca.pem", "website-ca.pem", "device-ca.pem"] {
            try await files.refuses(name, name) { try files.write(name, SpoiltFile.certificate) }
            try await files.refuses("No such file", name) { unlink(files.relay.file(name)) }
        }
        try await files.refuses("append it", "ca.pem") { try files.write("ca.pem", try other.certificatePEM()) }
        try await files.refuses("Websites and phones must not share one", "website-ca.pem") {
            let both = try files.bytes("website-ca.pem") + files.bytes("device-ca.pem")
            try files.write("website-ca.pem", both)
        }
        try await files.refuses("does not match its certificate", "device-ca.key") {
            try files.write("device-ca.key", try other.keyPEM().reveal())
        }
        // A further authority of websites, as during its replacement.
        try await files.takes {
            try files.write("website-ca.pem", try files.bytes("website-ca.pem") + other.certificatePEM())
        }
        // Another authority of phones signs; the certificates of the former one stay valid.
        try await files.relay.tool("authority", "replace", "phones")
        try await files.takes {}
    }

    private func pins(_ files: ReloadedInstallation) async throws {
        try await files.refuses("holds no statement") { try files.set("tls.pins", to: "ca.pem") }
        try await files.refuses("pins.jwt: No such file") { try files.set("tls.pins", to: "pins.jwt") }
        try await files.relay.tool("server", "pins")
        try await files.takes { try files.set("tls.pins", to: "pins.jwt") }
    }

    private func revocationLists(_ files: ReloadedInstallation) async throws {
        let issuer = try files.authority("website-ca")
        let now = SystemTime().now()
        try await files.refuses("holds no revocation list") { try files.set("tls.revoked", to: "ca.pem") }
        try await files.refuses("expired at", "revoked.pem") {
            try files.write("revoked.pem", try issuer.makeCRL(revoked: [], days: 7, at: now - .seconds(8 * 86_400)))
            try files.set("tls.revoked", to: "revoked.pem")
        }
        try await files.refuses("is not signed by an authority", "revoked.pem") {
            try files.write("revoked.pem", try files.authority("ca").makeCRL(revoked: [], days: 7, at: now))
            try files.set("tls.revoked", to: "revoked.pem")
        }
        try await files.takes {
            try files.write("revoked.pem", try issuer.makeCRL(revoked: [], days: 7, at: now))
            try files.set("tls.revoked", to: "revoked.pem")
        }
    }

    private func masterKeys(_ files: ReloadedInstallation) async throws {
        try await files.refuses("master.key: line 1 must be", "master.key") { try files.write("master.key", "x\n") }
        try await files.refuses("master.key", "master.key") { unlink(files.relay.file("master.key")) }
        // The same key under another name.
        try await files.takes {
            try files.write("other.key", try files.bytes("master.key"))
            try files.set("master_key_file", to: "other.key")
        }
    }

    @Test func deliverySettingsAreReloadedUnderLoad() async throws {
        let apple = try await TestAPNs.start()
        let mail = try await TestMailServer.start()
        let gateway = try await TestGateway { _ in .status(202) }
        let fixture = try await Fixture.start(apple: apple) { settings in
            try settings.set("push.web.key", to: "vapid.key")
        }
        try await underLoad(fixture) { files in
            try await pushKeys(files, apple)
            try await mailServers(files, mail)
            try await gateways(files, gateway)
            try await texts(files)
            try await webhooks(files)
        }
    }

    private func pushKeys(_ files: ReloadedInstallation, _ apple: TestAPNs) async throws {
        try await files.refuses("AuthKey.p8", "AuthKey.p8") {
            try files.write("AuthKey.p8", SpoiltFile.key)
            try files.set("push.apns.key", to: "AuthKey.p8")
        }
        try await files.refuses("push.apns needs either key, key_id and team_id") {
            try files.set("push.apns.key_id", to: "\"\"")
        }
        try await files.refuses("vapid.key", "vapid.key") { try files.write("vapid.key", SpoiltFile.key) }
        try await files.takes {
            try files.write("AuthKey.p8", try apple.key.pem().reveal())
            try files.set("push.apns.key", to: "AuthKey.p8")
        }
    }

    private func mailServers(_ files: ReloadedInstallation, _ server: TestMailServer) async throws {
        func set() throws {
            try files.set("mail.url", to: "smtp://127.0.0.1:\(server.port)")
            try files.set("mail.from", to: "login@example.com")
        }
        try await files.refuses("mail.password: No such file") {
            try set()
            try files.set("mail.username", to: "relay")
            try files.set("mail.password_file", to: "mail.password")
        }
        try await files.refuses("mail.from is missing") {
            try files.set("mail.url", to: "smtp://127.0.0.1:\(server.port)")
        }
        try await files.refuses("mail-ca.pem", "mail-ca.pem") {
            try set()
            try files.write("mail-ca.pem", SpoiltFile.certificate)
            try files.set("mail.ca", to: "mail-ca.pem")
        }
        try await files.takes { try set() }
        try await files.takes { try files.set("mail.ca", to: "ca.pem") }
        try await files.takes {
            try files.write("mail.password", "secret\n")
            try set()
            try files.set("mail.username", to: "relay")
            try files.set("mail.password_file", to: "mail.password")
        }
    }

    private func gateways(_ files: ReloadedInstallation, _ gateway: TestGateway) async throws {
        func set(_ kind: String, _ more: String = "") throws {
            let url = "\(gateway.url)/cgi-bin/sendsms"
            try files.set(
                "sms.gateways",
                to: "[{name: one, kind: \(kind), url: \"\(url)\", username: u, password_file: sms.password\(more)}]")
            try files.set("sms.allow", to: "[\"+49\"]")
        }
        try await files.refuses("kind must be one of") { try set("canal") }
        try await files.refuses("sms.password: No such file") { try set("kannel") }
        try await files.takes {
            try files.write("sms.password", "secret\n")
            try set("kannel")
        }
        try await files.refuses("sms-ca.pem", "sms-ca.pem") {
            try files.write("sms-ca.pem", SpoiltFile.certificate)
            try set("kannel", ", ca: sms-ca.pem")
        }
        try await files.takes { try set("kannel", ", ca: ca.pem") }
    }

    private func texts(_ files: ReloadedInstallation) async throws {
        mkdir(files.relay.file("templates"), 0o700)
        try await files.refuses("fr.po", "templates/fr.po") {
            try files.write("templates/fr.po", Self.template("Votre code pour {sitio}"))
            try files.set("templates.directory", to: "templates")
        }
        try await files.refuses("nowhere") { try files.set("templates.directory", to: "nowhere") }
        try await files.takes {
            try files.write("templates/fr.po", Self.template("Votre code pour {website}"))
            try files.set("templates.directory", to: "templates")
        }
    }

    private func webhooks(_ files: ReloadedInstallation) async throws {
        try await files.refuses("webhooks.certificate and webhooks.key must be set together") {
            try files.set("webhooks.key", to: "server.key")
        }
        try await files.refuses("hooks-ca.pem", "hooks-ca.pem") {
            try files.write("hooks-ca.pem", SpoiltFile.certificate)
            try files.set("webhooks.ca", to: "hooks-ca.pem")
        }
        try await files.takes {
            try files.set("webhooks.allow", to: "127.0.0.0/8")
            try files.set("webhooks.ca", to: "ca.pem")
        }
        try await files.refuses("cannot be used with") {
            try files.set("webhooks.certificate", to: "server.pem")
            try files.set("webhooks.key", to: "website-ca.key")
        }
        try await files.takes {
            try files.set("webhooks.certificate", to: "server.pem")
            try files.set("webhooks.key", to: "server.key")
        }
    }

    @Test func settingsAreReloadedUnderLoad() async throws {
        let fixture = try await Fixture.start()
        try await underLoad(fixture) { files in
            try await values(files)
            try await limits(files)
            try await databases(files)
            try await settingsForRestart(files)
        }
    }

    private func values(_ files: ReloadedInstallation) async throws {
        let text = try TextFile.read(files.relay.settings)
        try await files.refuses("nonsense is not a setting") { try files.write("twoefay.yaml", text + "nonsense: 1\n") }
        try await files.refuses("twoefay.yaml:1:1: ") { try files.write("twoefay.yaml", "\u{7}") }
        try await files.refuses("origin is missing") { try files.write("twoefay.yaml", "") }
        try await files.refuses("the settings cannot be read") { unlink(files.relay.settings) }
        try await files.refuses("policies.lifetime must be a whole number") {
            try files.set("policies.lifetime", to: "5")
        }
        try await files.takes {
            try files.set("policies.lifetime", to: "201")
            try files.set("log.level", to: "notice")
        }
    }

    private func limits(_ files: ReloadedInstallation) async throws {
        try await files.refuses("connections.per_phone must be a whole number") {
            try files.set("connections.per_phone", to: "0")
        }
        try await files.refuses("proxies must not contain all addresses") { try files.set("proxies", to: "0.0.0.0/0") }
        try await files.refuses("retention.logins must be a whole number") {
            try files.set("retention.logins", to: "1")
        }
        try await files.takes {
            // Fewer connections than are open: none of them is ended.
            try files.set("connections.limit", to: "16")
            try files.set("connections.per_source", to: "1")
            try files.set("connections.per_phone", to: "1")
            try files.set("connections.first_request", to: "1")
            try files.set("connections.unidentified", to: "1")
            try files.set("quotas.website_requests", to: "100")
            try files.set("quotas.caller_requests", to: "5")
            try files.set("retention.logins", to: "2")
            try files.set("rolling.webhooks", to: "0")
            try files.set("rolling.nonces", to: "0")
            // Open connections from this address continue without a PROXY header.
            try files.set("proxies", to: "127.0.0.1")
        }
        try await files.takes {
            try files.set("connections.limit", to: "0")
            try files.set("proxies", to: "\"\"")
        }
    }

    private func databases(_ files: ReloadedInstallation) async throws {
        try await files.refuses("places.mmdb", "places.mmdb") {
            try files.write("places.mmdb", "nothing")
            try files.set("geo.database", to: "places.mmdb")
        }
        try await files.takes {
            var cities = MaxMindFile()
            cities.add("203.0.113.0/24", .place(city: "Graz", country: "Austria"))
            try files.write("places.mmdb", cities.bytes)
            try files.set("geo.database", to: "places.mmdb")
        }
        try await files.refuses("roots.pem", "roots.pem") {
            try files.write("roots.pem", SpoiltFile.certificate)
            try files.set("attestation.ios_roots", to: "roots.pem")
        }
        try await files.takes { try files.set("attestation.ios_roots", to: "ca.pem") }
        try await files.refuses("android.pem", "android.pem") {
            try files.write("android.pem", SpoiltFile.certificate)
            try files.set("attestation.android_roots", to: "android.pem")
        }
        try await files.refuses("there is no group") {
            try files.set("control.socket", to: "unix:control")
            try files.set("control.operators", to: "no-such-group-here")
        }
        try await files.takes {
            try files.set("control.socket", to: "unix:control")
            try files.set("control.operators", to: "root")
        }
        let staff = "[{name: staff, website: shop, kind: csv, file: staff.csv}]"
        try await files.refuses("directory staff: kind must be one of") {
            try files.set("directories", to: "[{name: staff, kind: fax}]")
        }
        try await files.takes {
            try files.write("staff.csv", "id,username,email,phone,display_name,language\n1,zoe,,,,\n")
            try files.set("directories", to: staff)
        }
    }

    private func settingsForRestart(_ files: ReloadedInstallation) async throws {
        try await files.refuses("listen: localhost is not an IP address") {
            try files.set("listen", to: "localhost:1")
        }
        try await files.refuses("storage must begin with sqlite: or mariadb://") {
            try files.set("storage", to: "mysql://x")
        }
        let before = try TextFile.read(files.relay.settings)
        try await files.takes {
            try files.set("loops", to: "3")
            try files.set("metrics.listen", to: "127.0.0.1:9")
        }
        let lines = try TextFile.read(files.relay.settings).split(separator: "\n", omittingEmptySubsequences: false)
        for key in ["loops", "metrics.listen"] {
            let words = key.split(separator: ".")
            let text = "\(String(repeating: "  ", count: words.count - 1))\(words[words.count - 1]): "
            let number = try #require(lines.lastIndex { $0.hasPrefix(text) && !before.contains("\n\($0)\n") }) + 1
            #expect(
                files.relay.log.contains(
                    "event=daemon.restart setting=\(key) path=\(files.relay.settings) line=\(number) "))
        }
        try await files.takes { try files.write("twoefay.yaml", before) }
    }
}
