import Couriers
import Curl
import Domain
import HTTP
import Log
import Storage
import Testing

@testable import Daemon

private let least = """
    origin: https://login.example.com:8080
    listen: 0.0.0.0:8080
    storage: sqlite:twoefay.db

    """

private func read(_ text: String) throws -> Settings {
    try SettingsReader.read(Array(text.utf8), file: "/etc/twoefay/twoefay.yaml")
}

/// Returns the problems of a file, each with its line and column.
private func complaints(_ text: String) -> [String] {
    do throws(SettingsReader.Problems) {
        _ = try SettingsReader.read(Array(text.utf8), file: "t.yaml")
        return []
    } catch {
        return error.all.map(\.description)
    }
}

/// Returns settings in which every key differs from its default.
private func everything() throws -> Settings {
    var settings = Settings(
        directory: "/etc/twoefay", origin: try WebAddress(settingsText: "https://[::1]:8443"),
        listen: try HostPort(settingsText: "[::]:8443"),
        storage: try StorageText(settingsText: "mariadb://u@a:3307,b/twoefay?password_file=p"))
    settings.proxies = try AddressRanges(settingsText: "127.0.0.2, fd00::/64")
    settings.loops = 3
    settings.masterKey = FileName("keys/master \"one\".key")
    settings.keys = try SocketName(settingsText: "unix:/run/twoefay-keys/socket")
    settings.token.module = FileName("/usr/lib/token.so")
    settings.token.label = "phones: one"
    settings.token.key = "authority #1"
    settings.token.pinFile = FileName("keys/pin")
    settings.tls.certificate = FileName("/c.pem")
    settings.tls.key = FileName("c.key")
    settings.tls.authority = FileName("a.pem")
    settings.tls.websites = FileName("w.pem")
    settings.tls.websitesKey = FileName("w.key")
    settings.tls.phones = FileName("p.pem")
    settings.tls.phonesKey = FileName("p.key")
    settings.tls.revoked = FileName("r.pem")
    settings.push.endpoint = try WebAddress(settingsText: "https://localhost:2197")
    settings.push.topic = "com.example: app #1"
    settings.push.key = FileName("k.p8")
    settings.push.keyID = "ABC"
    settings.push.teamID = "DEF"
    settings.push.authority = FileName("test.pem")
    settings.webPush.key = FileName("v.key")
    settings.webPush.contact = try ContactText(settingsText: "https://example.com/contact")
    settings.webPush.allowed = try AddressRanges(settingsText: "10.0.0.0/8, fd00::/8")
    settings.webPush.authority = FileName("inside.pem")
    settings.webhooks.allowed = try AddressRanges(settingsText: "10.30.0.0/16")
    settings.webhooks.authority = FileName("shops.pem")
    settings.webhooks.certificate = FileName("relay.pem")
    settings.webhooks.key = FileName("relay.key")
    settings.mail.url = try SMTPAddress(settingsText: "smtps://[::1]:465")
    settings.mail.from = try MailAddress(settingsText: "Login #1 <login@example.com>")
    settings.mail.username = "relay: one"
    settings.mail.passwordFile = FileName("mail.password")
    settings.mail.authority = FileName("mail-ca.pem")
    settings.templates = FileName("words")
    settings.geolocation = FileName("cities.mmdb")
    settings.attestations.appleApps = try AppIDs(settingsText: "ABCDE12345.com.example.app")
    settings.attestations.development = .accepted
    settings.attestations.appleRoots = FileName("apple.pem")
    settings.attestations.androidApps = try AndroidApps(
        settingsText: "com.example.app=" + String(repeating: "0a", count: 32))
    settings.attestations.androidRoots = FileName("android.pem")
    settings.attestations.revocations = FileName("list.json")
    settings.attestations.revocationDays = 3
    try settings.policy.set("attestation-android", to: "required")
    try settings.policy.set("min-os-ios", to: "17.4")
    try settings.policy.set("screen-lock", to: "on")
    settings.metrics = try LocalAddress(settingsText: "[::1]:9464")
    try settings.policy.set("answers", to: "certificate")
    try settings.policy.set("guesses", to: "5")
    try settings.policy.set("lifetime", to: "120")
    try settings.policy.set("number", to: "0")
    try settings.policy.set("push-detail", to: "minimal")
    settings.log.format = .json
    settings.log.level = .debug
    return settings
}

@Suite struct SettingsReaderTests {
    @Test func threeKeysAreEnough() throws {
        let settings = try read(least)
        #expect(settings.origin.settingsText == "https://login.example.com:8080")
        #expect(settings.listen == HostPort(host: "0.0.0.0", port: 8080))
        #expect(try settings.storageURL() == .sqlite(path: "/etc/twoefay/twoefay.db"))
        #expect(settings.path(of: settings.tls.key) == "/etc/twoefay/server.key")
        #expect(settings.policy == Policy())
        #expect(settings.push.topic == nil)
    }

    @Test func printedSettingsAreReadBack() throws {
        let settings = try everything()
        #expect(try read(SettingsExample.annotated(settings)) == settings)
        let bare = try read(least)
        #expect(try read(SettingsExample.annotated(bare)) == bare)
    }

    @Test func emptyGroupsAndOptionalKeysAreIgnored() throws {
        #expect(try read(least + "push:\npolicies: {}\ntls: ~\n") == read(least))
        #expect(try read(least + "push: {apns: {ca: \"\", topic: }}\n") == read(least))
    }

    @Test func allProblemsAreReportedWithTheirPosition() {
        let text = """
            orign: https://x
            listen: 8080
            tls:
              certificate: {}
              kee: a
            policies: { lifetime: 30, answers: phone }
            push: 7
            """
        #expect(
            complaints(text) == [
                "t.yaml:1:1: orign is not a setting; did you mean origin?",
                "t.yaml:2:9: listen must be HOST:PORT, such as 0.0.0.0:8080 or [::1]:8080",
                "t.yaml:4:16: tls.certificate must be a single value",
                "t.yaml:5:3: kee is not a setting in tls; did you mean key?",
                "t.yaml:6:23: policies.lifetime must be a whole number from 60 to 600",
                "t.yaml:6:36: policies.answers must be one of signed, certificate, website",
                "t.yaml:7:7: push must contain keys with values",
                "t.yaml:1:1: origin is missing, as in origin: https://login.example.com:8080",
                "t.yaml:1:1: storage is missing, as in storage: sqlite:twoefay.db",
            ])
    }

    @Test(
        "One key, wrong",
        arguments: [
            ("storage: mysql://x", "storage must begin with sqlite: or mariadb://"),
            ("origin: http://a.example", "must be https://HOST"),
            ("origin: https://a.example/", "must be https://HOST"),
            ("origin: https://a.example:99999", "must be https://HOST"),
            ("origin: https://a b", "must be https://HOST"),
            ("origin:", "must be https://HOST"),
            ("listen: '[::1]'", "must be HOST:PORT"),
            ("listen: a:+1", "must be HOST:PORT"),
            ("listen: ':80'", "must be HOST:PORT"),
        ])
    func settingsKeyIsReadAndChecked(line: String, message: String) throws {
        let key = String(line.prefix { $0 != ":" })
        let rest = least.split(separator: "\n").filter { !$0.hasPrefix("\(key):") }.joined(separator: "\n")
        let said = complaints("\(rest)\n\(line)\n")
        #expect(said.count == 1)
        #expect(said.first?.contains(message) == true, "\(said)")
    }

    @Test(
        arguments: [
            ("loops: -1", "t.yaml:4:8: loops must be a whole number from 0 to 256"),
            ("loops: many", "t.yaml:4:8: loops must be a whole number from 0 to 256"),
            ("loops: [1]", "t.yaml:4:8: loops must be a single value"),
            ("log: {level: inof}", "t.yaml:4:14: log.level must be one of"),
            ("tls: {key: ''}", "t.yaml:4:12: tls.key must name a file"),
            (
                "push: {apns: {key: k, key_id: a, team_id: b}}",
                "t.yaml:4:15: push.apns.key, key_id, team_id have no effect without push.apns.topic"
            ),
            (
                "push: {apns: {topic: t}}",
                "t.yaml:4:8: push.apns needs either key, key_id and team_id, or certificate and certificate_key"
            ),
            ("push: {apns: {topic: t, key: k, key_id: a}}", "needs either key, key_id and team_id"),
            (
                "push: {apns: {topic: t, certificate: c, certificate_key: k, key: k}}",
                "needs either key, key_id and team_id"
            ),
            ("push: {web: {allow: 10.0.0.0/8}}", "t.yaml:4:14: push.web.allow has no effect without push.web.key"),
            ("push: {web: {key: k, allow: 10.0.0.1/8}}", "push.web.allow must be ranges such as 10.20.0.0/16"),
            ("push: {web: {key: k, allow: ', '}}", "push.web.allow must be one or more ranges"),
            (
                "push: {web: {key: k, contact: op@example.com}}",
                "push.web.contact must be mailto:NAME@HOST or an https:"
            ),
            ("push: {web: {key: k, contact: 'mailto:op'}}", "push.web.contact must be mailto:NAME@HOST or an https:"),
            ("push: {web: {key: k, contact: 'http://example.com'}}", "push.web.contact must be mailto:NAME@HOST or"),
            ("metrics: {listen: '0.0.0.0:9464'}", "metrics.listen must be a loopback address"),
            ("metrics: {listen: '[::]:9464'}", "metrics.listen must be a loopback address"),
            ("metrics: {listen: 'localhost:9464'}", "metrics.listen must be a loopback address"),
            ("metrics: {listen: 9464}", "metrics.listen must be HOST:PORT"),
            ("key_service: /run/keys", "key_service must be unix:PATH, such as unix:/run/twoefay-keys/socket"),
            (
                "pkcs11: {key: k}",
                "t.yaml:4:10: pkcs11.key has no effect without key_service: only twoefay-keys uses a token"
            ),
            ("key_service: unix:k\npkcs11: {module: m}", "t.yaml:5:1: pkcs11 needs module, token, key and pin_file"),
            ("key_service: 'unix:'", "key_service must be unix:PATH, such as unix:/run/twoefay-keys/socket"),
            (
                "key_service: unix:/\(String(repeating: "x", count: 107))",
                "key_service must have a path of at most 107 bytes"
            ),
            ("proxies: 10.0.0.1/8", "t.yaml:4:10: proxies must be ranges such as 10.20.0.0/16"),
            ("proxies: '10.0.0.0/8, ::/0'", "proxies must not contain all addresses"),
            ("proxies: 0.0.0.0/0", "t.yaml:4:1: proxies must not contain all addresses"),
            ("proxies: '10.0.0.5, ::ffff:10.0.0.6'", "proxies must contain IPv4 addresses in IPv4 form"),
            ("fax: {url: 'smtp://127.0.0.1'}", "t.yaml:4:1: fax is not a setting; the settings are origin, listen,"),
            ("origin: https://b.example", "t.yaml:4:1: \"origin\" is already set in line 1"),
            ("- a", "t.yaml:4:1:"),
        ])
    func invalidSettingsLineIsReported(line: String, message: String) {
        let said = complaints(least + line + "\n")
        #expect(said.count == 1)
        #expect(said.first?.contains(message) == true, "\(said)")
    }

    @Test func keysThatDoNotFitAreAllReported() {
        let text = """
            proxies: 0.0.0.0/0
            push:
              apns: {topic: t}
              web: {contact: "mailto:a@b.example"}
            mail:
              url: smtp://127.0.0.1
              username: u
            webhooks:
              key: k
            pkcs11:
              module: m

            """
        #expect(
            complaints(least + text) == [
                "t.yaml:4:1: proxies must not contain all addresses: a proxy can claim any client address",
                "t.yaml:6:3: push.apns needs either key, key_id and team_id, or certificate and certificate_key",
                "t.yaml:7:9: push.web.contact has no effect without push.web.key",
                "t.yaml:8:1: mail.from is missing, as in mail.from: login@example.com",
                "t.yaml:10:3: mail.username and mail.password_file must be set together",
                "t.yaml:12:3: webhooks.certificate and webhooks.key must be set together",
                "t.yaml:14:3: pkcs11.module has no effect without key_service: only twoefay-keys uses a token",
            ])
    }

    @Test func emptyFileReportsRequiredKeys() {
        #expect(complaints("").count == 3)
        #expect(complaints("# nothing\n").count == 3)
        #expect(complaints("just words").first?.contains("must contain keys") == true)
    }

    @Test func everyPolicyIsExplained() {
        #expect(Set(SettingsKeys.policyTexts.keys) == Set(Policy.keys))
        for key in SettingsKeys.all { #expect(!key.about.isEmpty, "\(key.name)") }
        #expect(Set(SettingsKeys.all.map(\.name)).count == SettingsKeys.all.count)
    }
}

@Suite struct SettingsPageTests {
    /// Compares docs/operators/settings.md with the settings file that the program prints. If they
    /// differ, copy the file from the failure message into the page.
    @Test func settingsPageEqualsTheExample() throws {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let page = String(decoding: try Files.read("/\(root)/docs/operators/settings.md"), as: UTF8.self)
        let example = SettingsExample.annotated(SettingsExample.forReaders)
        #expect(page.contains("```yaml\n\(example)```\n"), "docs/operators/settings.md should show:\n\(example)")
    }
}
