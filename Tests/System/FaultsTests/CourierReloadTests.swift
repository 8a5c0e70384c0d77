import Glibc
import JSON
import TestSupport
import Testing

/// SIGHUP reloads gateways, the mail server and the templates, for later messages.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct CourierReloadTests {
    private static let number = "+4915112345678"

    /// Registers a user without a phone, and starts a login that sends a code.
    private func login(_ username: String, _ scene: Fixture, _ more: JSONObject) async throws -> Login {
        var body: JSONObject = ["username": .string(username)]
        for member in more.members { body.set(member.name, member.value) }
        let registered = try await scene.shop.send("POST", "/register", body)
        return try await scene.login(try Fixture.registered(registered).token)
    }

    private func reload(_ scene: Fixture, _ number: Int) async throws {
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded", number: number)
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
        let scene = try await Fixture.start { settings in
            try settings.set("sms.gateways", to: Self.kannel(first, password))
            try settings.set("sms.allow", to: "[\"+49\"]")
        }
        _ = try await login("anna", scene, ["phone": .string(Self.number)])
        await first.isAsked(1)
        #expect(first.asked.first?.query["password"] == "before")

        // A fault in the new settings is logged, and changes nothing.
        try scene.relay.change { try $0.set("sms.gateways", to: "[{name: one, kind: canal}]") }
        scene.relay.signal(SIGHUP)
        let told = try await scene.relay.logged("event=daemon.reload ")
        #expect(told.contains("level=error") && told.contains("kind must be one of"), "\(told)")
        _ = try await login("bert", scene, ["phone": "+4915112345679"])
        await first.isAsked(2)

        try TextFile.write("after\n", to: password)
        try scene.relay.change { try $0.set("sms.gateways", to: Self.kannel(second, password)) }
        try await reload(scene, 1)
        _ = try await login("carl", scene, ["phone": "+4915112345680"])
        await second.isAsked(1)
        #expect(second.asked.first?.query["password"] == "after" && first.asked.count == 2)

        try scene.relay.change { try $0.set("sms.allow", to: "[\"+43\"]") }
        try await reload(scene, 2)
        let refused = try await login("dora", scene, ["phone": "+4915112345681"])
        let steps = try await scene.auth(refused.challenge).json["steps"]?.array?.first?.object
        #expect(steps?["factor"] == "sms" && steps?["state"] == "refused", "\(String(describing: steps))")

        // An empty list is valid, too. A change of another setting is logged as waiting for a restart.
        try scene.relay.change { settings in
            try settings.set("sms.gateways", to: "[]")
            settings =
                settings.split(separator: "\n").filter { !$0.hasPrefix("  allow:") }.joined(separator: "\n") + "\n"
            try settings.set("policies.lifetime", to: "200")
        }
        try await reload(scene, 3)
        #expect(try await scene.relay.logged("event=daemon.restart").contains("other settings have changed"))
        #expect(second.asked.count == 1)
    }

    @Test func reloadReplacesTheMailServer() async throws {
        let first = try await TestMailServer.start()
        let second = try await TestMailServer.start {
            $0.tls = .starttls
            $0.login = "relay:after"
        }
        let scene = try await Fixture.start { settings in
            try settings.set("mail.url", to: "smtp://127.0.0.1:\(first.port)")
            try settings.set("mail.from", to: "login@example.com")
        }
        _ = try await login("anna", scene, ["email": "anna@example.org"])
        #expect(try await first.mail().to == ["<anna@example.org>"])
        // The password file holds the wrong password.
        try scene.relay.change { settings in
            try settings.set("mail.username", to: "relay")
            try settings.set("mail.password_file", to: "mail.password")
        }
        scene.relay.signal(SIGHUP)
        #expect(try await scene.relay.logged("event=daemon.reload ").contains("mail.password"))
        _ = try await login("bert", scene, ["email": "bert@example.org"])
        #expect(try await first.mail(2).to == ["<bert@example.org>"])

        try TextFile.write("after\n", to: scene.relay.file("mail.password"))
        try TextFile.write(second.authority, to: scene.relay.file("mail-ca.pem"))
        try scene.relay.change { settings in
            try settings.set("mail.url", to: "smtp://localhost:\(second.port)")
            try settings.set("mail.ca", to: "mail-ca.pem")
        }
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded")
        _ = try await login("carl", scene, ["email": "carl@example.org"])
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
        let scene = try await Fixture.start { settings in
            try settings.set("sms.gateways", to: Self.kannel(gateway, password))
            try settings.set("sms.allow", to: "[\"+49\"]")
            try settings.set("templates.directory", to: directory.path)
        }
        func told(_ username: String, _ number: Int) async throws -> String {
            let phone = "+4915112345\(100 + number)"
            _ = try await login(username, scene, ["phone": .string(phone), "language": "fr"])
            await gateway.isAsked(number)
            return gateway.asked.last?.query["text"] ?? ""
        }
        #expect(try await told("anna", 1).hasPrefix("Bonjour "))
        try TextFile.write(says("Salut"), to: words)
        // The new texts are not used before SIGHUP.
        #expect(try await told("bert", 2).hasPrefix("Bonjour "))
        try await reload(scene, 1)
        #expect(try await told("carl", 3).hasPrefix("Salut "))
        try TextFile.write("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"Nothing\"\n", to: words)
        scene.relay.signal(SIGHUP)
        #expect(try await scene.relay.logged("event=daemon.reload ").contains("sms.login must contain {code}"))
        #expect(try await told("dora", 4).hasPrefix("Salut "))
    }
}
