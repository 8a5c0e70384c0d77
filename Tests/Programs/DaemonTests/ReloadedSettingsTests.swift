import Bytes
import Crypto
import Glibc
import Relay
import TestSupport
import Testing
import YAML

@testable import Daemon

/// The division of all settings into those that a reload takes and those that need a restart.
@Suite struct ReloadedSettingsTests {
    private static let base = """
        origin: https://login.example.com:8080
        listen: 0.0.0.0:8080
        storage: sqlite:twoefay.db
        push: {apns: {topic: a.b, key: k.p8, key_id: ABC, team_id: DEF}, fcm: {account: a.json}, web: {key: vapid.key}}

        """

    private func file(_ text: String) throws -> SettingsOfFile {
        let (read, problems) = try SettingsReader.examine(Array(text.utf8), file: "t.yaml")
        try #require(problems.isEmpty, "\(problems)")
        return read
    }

    /// Returns settings in which one key has another value.
    private func changed(_ key: SettingsKey, _ settings: Settings) throws -> Settings {
        if let readTree = key.readTree {
            var new = settings
            let problems = readTree(&new, try YAMLReader.read(Array(key.example.utf8), file: "example.yaml"))
            try #require(problems.isEmpty && new != settings, "\(key.name): \(problems)")
            return new
        }
        let words = [
            "on", "json", "debug", "personal", "required", "optional", "none", "low", "certificate", "minimal",
            "cancel", "letter", "confirmed", "website", "proved", "recorded", "biometric", "refuse", "flag", "once",
            "again", "recovery", "production", "high", "substantial", "restricted", "14", "17.4", "30 EUR", "202607",
            "accepted", "off", "sign", "mail", "push", "wait",
        ]
        let values = ["elsewhere.pem", "unix:/elsewhere", "https://b.example", "127.0.0.1:1", "sqlite:b.db"]
        let numbers = ["0", "1", "2", "3", "6", "17", "64", "99", "100", "201", "5000", "202501"]
        for text in [key.example] + words + numbers + values {
            var new = settings
            do throws(SettingsFault) { try key.read(&new, text) } catch { continue }
            if new != settings { return new }
        }
        throw Child.Problem(description: "no other value of \(key.name) is known to this test")
    }

    /// Each setting is either taken by a reload, or in the list of the page. So a new setting cannot
    /// be forgotten in both.
    @Test func settingsThatNeedARestartAreThoseOfThePage() throws {
        let settings = try file(Self.base).settings
        var left: [String] = []
        for key in SettingsKeys.all {
            let new = SettingsOfFile(try changed(key, settings))
            // A certificate beside the key is no valid file.
            if new.settings.push.topic != nil, new.settings.push.credential == nil { continue }
            let pending = new.settingsForRestart(using: settings.taking(new.settings))
            #expect(pending.isEmpty || pending.map(\.name) == [key.name], "\(key.name): \(pending)")
            left += pending.map(\.name)
        }
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let page = String(decoding: try Files.read("/\(root)/docs/operators/running.md"), as: UTF8.self)
        let list = try #require(page.split(separator: "These settings need a restart:").dropFirst().first)
        let words = try #require(list.split(separator: "`. ").first).split(separator: "`")
        let named = words.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
        let all = named.flatMap { name in
            SettingsKeys.all.map(\.name).filter { $0 == name || $0.hasPrefix(name + ".") }
        }
        #expect(Set(all) == Set(left), "only one has: \(Set(all).symmetricDifference(left).sorted())")
    }

    @Test func settingThatNeedsARestartIsNamedWithItsLine() throws {
        let start = try file(Self.base + "metrics: {listen: \"127.0.0.1:9464\"}\nloops: 1\n").settings
        let new = try file(Self.base + "policies:\n  lifetime: 120\nlog:\n  format: json\n  level: debug\nloops: 2\n")
        let pending = new.settingsForRestart(using: start.taking(new.settings))
        #expect(
            pending.map(\.text) == [
                "t.yaml:10:1: loops", "metrics.listen, which is not set any more", "t.yaml:8:3: log.format",
            ])
        #expect(pending.map(\.line) == [10, nil, 8])
    }

    /// Switching pushes on needs a sender, which only a start makes.
    @Test func pushCredentialIsTakenAsAWhole() throws {
        let (off, on) = (Self.base.split(separator: "\n").dropLast().joined(separator: "\n"), Self.base)
        let new = try file(on)
        #expect(
            new.settingsForRestart(using: try file(off).settings.taking(new.settings)).map(\.name) == [
                "push.apns.topic", "push.apns.key", "push.apns.key_id", "push.apns.team_id", "push.fcm.account",
                "push.web.key",
            ])
        let other = try file(on.replacing("key_id: ABC", with: "key_id: XYZ"))
        let now = new.settings.taking(other.settings)
        #expect(now.push.keyID == "XYZ" && other.settingsForRestart(using: now) == [])
    }

    /// The audit names what has changed, and no secret of it.
    @Test func differenceHasNoSecret() throws {
        let directory = try TemporaryDirectory()
        func inUse(_ more: String, password: String) throws -> SettingsInUse {
            try TextFile.write(password, to: directory("mail.password"))
            chmod(directory("mail.password"), 0o600)
            var settings = try file(Self.base + more).settings
            settings.directory = directory.path
            return SettingsInUse(settings, operationsKey: Secret(Array(repeating: 7, count: 32)))
        }
        func mail(_ username: String) -> String {
            "mail: {url: \"smtp://mail.example\", from: a@b.example, username: \(username), password_file: mail.password}\n"
        }
        func gateway(_ header: String) -> String {
            "sms:\n  allow: [\"+49\"]\n  gateways:\n    - {name: g, kind: http, url: \"https://g.example/?to={to}&t={text}\", "
                + "headers: {x-key: \(header)}}\n"
        }
        let before = try inUse(mail("anna") + gateway("k-first"), password: "hunter2")
        #expect(before.difference(to: before).names == [] && before.difference(to: before).values.text == nil)
        let after = try inUse(mail("berta") + gateway("k-second"), password: "hunter3")
        let difference = before.difference(to: after)
        #expect(difference.names == ["mail.username", "sms.gateways", "mail.password"])
        let text = try #require(difference.values.text)
        #expect(text.contains(#""mail.username":{"before":"anna","after":"berta"}"#), "\(text)")
        for secret in ["hunter", "k-first", "k-second"] { #expect(!text.contains(secret), "\(text)") }
        for content in ["hunter2", "hunter3"] {
            let guessable = Hex.encode(SHA256.hash(Array(content.utf8)))
            #expect(!text.contains(guessable.prefix(16)), "\(text)")
        }
        // The same content has the same digest, so that going back shows.
        let again = try inUse(mail("anna") + gateway("k-first"), password: "hunter2")
        #expect(before.difference(to: again).names == [])
        let removed = before.difference(to: try inUse("", password: "hunter2"))
        #expect(removed.names.contains("mail.url") && removed.values.text?.contains("null") == true)
    }

    /// The key process has read these files at its start.
    @Test func filesOfTheKeyProcessNeedItsRestart() throws {
        let service = Self.base + "key_service: unix:/run/keys\n"
        let start = try file(service).settings
        let new = try file(service + "master_key_file: other.key\ntls: {phones_key: p.key, certificate: c.pem}\n")
        let now = start.taking(new.settings)
        #expect(new.settingsForRestart(using: now).map(\.name) == ["master_key_file", "tls.phones_key"])
        #expect(now.tls.certificate == FileName("c.pem"))
        // Without that process, the relay reads them at a reload.
        let own = try file(Self.base + "master_key_file: other.key\ntls: {phones_key: p.key}\n")
        let alone = try file(Self.base).settings
        #expect(own.settingsForRestart(using: alone.taking(own.settings)) == [])
    }
}
