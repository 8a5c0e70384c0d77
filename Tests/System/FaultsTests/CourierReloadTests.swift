import Glibc
import JSON
import TestSupport
import Testing

/// SIGHUP reloads gateways, the mail server and the templates, for later messages.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct CourierReloadTests {
    private static let number = "+4915112345678"

    /// Registers a user without a phone, and starts a login that sends a code.
    private func login(_ username: String, _ fixture: Fixture, _ more: JSONObject) async throws -> Login {
        var body: JSONObject = ["username": .string(username)]
        for member in more.members { body.set(member.name, member.value) }
        let registered = try await fixture.shop.send("POST", "/register", body)
        return try await fixture.login(try Fixture.registered(registered).token)
    }

    private func reload(_ fixture: Fixture, _ number: Int) async throws {
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded", number: number)
    }

    private static func kannel(_ gateway: TestGateway, _ password: String) -> String {
        "[{name: one, kind: kannel, url: \"\(gateway.url)/cgi-bin/sendsms\", username: tester, "
            + "password_file: \"\(password)\"}]"
    }

    @Test func reloadReplacesGatewaysPasswordsAndLimits() async throws {
        let first = try await TestGateway { _ in .status(202) }
        let second = try await TestGateway { _ in .status(202) }
        let directory = try TemporaryDirectory()
        let password = directory("password")
        try TextFile.write("before\n", to: password)
        let fixture = try await Fixture.start { settings in
            try settings.set("sms.gateways", to: Self.kannel(first, password))
            try settings.set("sms.allow", to: "[\"+49\"]")
        }
        _ = try await login("anna", fixture, ["phone": .string(Self.number)])
        await first.isAsked(1)
        #expect(first.asked.first?.query["password"] == "before")

        // A fault in the new settings is logged, and changes nothing.
        try fixture.relay.change { try $0.set("sms.gateways", to: "[{name: one, kind: canal}]") }
        fixture.relay.signal(SIGHUP)
        let logged = try await fixture.relay.logged("event=daemon.reload ")
        #expect(logged.contains("level=error") && logged.contains("kind must be one of"), "\(logged)")
        _ = try await login("bert", fixture, ["phone": "+4915112345679"])
        await first.isAsked(2)

        try TextFile.write("after\n", to: password)
        try fixture.relay.change { try $0.set("sms.gateways", to: Self.kannel(second, password)) }
        try await reload(fixture, 1)
        _ = try await login("carl", fixture, ["phone": "+4915112345680"])
        await second.isAsked(1)
        #expect(second.asked.first?.query["password"] == "after" && first.asked.count == 2)

        try fixture.relay.change { try $0.set("sms.allow", to: "[\"+43\"]") }
        try await reload(fixture, 2)
        let refused = try await login("dora", fixture, ["phone": "+4915112345681"])
        let steps = try await fixture.auth(refused.challenge).json["steps"]?.array?.first?.object
        #expect(steps?["factor"] == "sms" && steps?["state"] == "refused", "\(String(describing: steps))")

        // An empty list is valid, too. A change of another setting is logged as waiting for a
        // restart.
        try fixture.relay.change { settings in
            try settings.set("sms.gateways", to: "[]")
            settings =
                settings.split(separator: "\n").filter { !$0.hasPrefix("  allow:") }.joined(separator: "\n") + "\n"
            try settings.set("loops", to: "3")
        }
        try await reload(fixture, 3)
        #expect(try await fixture.relay.logged("event=daemon.restart").contains("setting=loops "))
        #expect(second.asked.count == 1)
    }

    @Test func reloadReplacesTheMailServer() async throws {
        let first = try await TestMailServer.start()
        let second = try await TestMailServer.start {
            $0.tls = .starttls
            $0.login = "relay:after"
        }
        let fixture = try await Fixture.start { settings in
            try settings.set("mail.url", to: "smtp://127.0.0.1:\(first.port)")
            try settings.set("mail.from", to: "login@example.com")
        }
        _ = try await login("anna", fixture, ["email": "anna@example.org"])
        #expect(try await first.mail().to == ["<anna@example.org>"])
        // The password file holds the wrong password.
        try fixture.relay.change { settings in
            try settings.set("mail.username", to: "relay")
            try settings.set("mail.password_file", to: "mail.password")
        }
        fixture.relay.signal(SIGHUP)
        #expect(try await fixture.relay.logged("event=daemon.reload ").contains("mail.password"))
        _ = try await login("bert", fixture, ["email": "bert@example.org"])
        #expect(try await first.mail(2).to == ["<bert@example.org>"])

        try TextFile.write("after\n", to: fixture.relay.file("mail.password"))
        try TextFile.write(second.authority, to: fixture.relay.file("mail-ca.pem"))
        try fixture.relay.change { settings in
            try settings.set("mail.url", to: "smtp://localhost:\(second.port)")
            try settings.set("mail.ca", to: "mail-ca.pem")
        }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        _ = try await login("carl", fixture, ["email": "carl@example.org"])
        let mail = try await second.mail()
        #expect(mail.to == ["<carl@example.org>"] && mail.user == "relay" && mail.overTLS)
    }

    @Test func reloadReadsChangedTemplates() async throws {
        let gateway = try await TestGateway { _ in .status(202) }
        let directory = try TemporaryDirectory()
        let (password, words) = (directory("password"), directory("fr.po"))
        func says(_ word: String) -> String { "msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"\(word) {code}\"\n" }
        try TextFile.write("secret\n", to: password)
        try TextFile.write(says("Bonjour"), to: words)
        let fixture = try await Fixture.start { settings in
            try settings.set("sms.gateways", to: Self.kannel(gateway, password))
            try settings.set("sms.allow", to: "[\"+49\"]")
            try settings.set("templates.directory", to: directory.path)
        }
        func message(_ username: String, _ number: Int) async throws -> String {
            let phone = "+4915112345\(100 + number)"
            _ = try await login(username, fixture, ["phone": .string(phone), "language": "fr"])
            await gateway.isAsked(number)
            return gateway.asked.last?.query["text"] ?? ""
        }
        #expect(try await message("anna", 1).hasPrefix("Bonjour "))
        try TextFile.write(says("Salut"), to: words)
        // The new texts are not used before SIGHUP.
        #expect(try await message("bert", 2).hasPrefix("Bonjour "))
        try await reload(fixture, 1)
        #expect(try await message("carl", 3).hasPrefix("Salut "))
        try TextFile.write("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"Nothing\"\n", to: words)
        fixture.relay.signal(SIGHUP)
        #expect(try await fixture.relay.logged("event=daemon.reload ").contains("sms.login must contain {code}"))
        #expect(try await message("dora", 4).hasPrefix("Salut "))
    }
}
