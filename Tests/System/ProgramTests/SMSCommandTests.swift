import Glibc
import JSON
import TestSupport
import Testing

@Suite("twoefay sms test", .timeLimit(.minutes(15)), .mayBlock) struct SMSCommandTests {
    /// Returns an installation with that gateway, behind one that is down.
    private func installed(_ gateway: TestGateway) async throws -> Installed {
        let down = try await TestGateway { _ in .status(500) }
        await down.goDown()
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        try TextFile.write("foobar\n", to: installed.directory("relay/kannel.password"))
        var settings = try TextFile.read(installed.settings)
        let kannel = { (name: String, url: String) in
            "{name: \(name), kind: kannel, url: \"\(url)/cgi-bin/sendsms\", username: tester, "
                + "password_file: kannel.password, cost: {\"+49\": 0.075}}"
        }
        try settings.set("sms.gateways", to: "[\(kannel("down", down.url)), \(kannel("up", gateway.url))]")
        try settings.set("sms.allow", to: "[\"+49\"]")
        try TextFile.write(settings, to: installed.settings)
        return installed
    }

    @Test func smsTestNamesGatewayAndCost() async throws {
        let gateway = try await TestGateway { _ in .status(202, "0: Accepted for delivery") }
        let installed = try await installed(gateway)
        let long = String(repeating: "x", count: 161)
        let sent = try await BuiltProgram.twoefay(
            "--config", installed.settings, "sms", "test", "--to", "+4915112345678", "--text", long)
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(sent.output.contains("Gateway down: down"))
        #expect(sent.output.contains("up accepted the message: 2 segments, gsm7; it costs 0.15."))
        #expect(gateway.asked.first?.query["text"] == long && gateway.asked.first?.query["password"] == "foobar")

        let german = try await BuiltProgram.twoefay(
            "--config", installed.settings, "sms", "test", "--to", "+4915112345678", "--language", "de", "--json")
        let json = try german.json
        #expect(json["accepted"]?.bool == true && json["gateway"]?.string == "up")
        #expect(json["parts"]?.integer == 1 && json["cost"]?.string == "0.075")
        #expect(gateway.asked.last?.query["text"]?.contains("123456") == true)
    }

    @Test func smsTestUsesTheInstallationsTemplates() async throws {
        let gateway = try await TestGateway { _ in .status(202, "0: Accepted for delivery") }
        let installed = try await installed(gateway)
        mkdir(installed.directory("relay/words"), 0o755)
        try TextFile.write(
            "msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"Voici {code}\"\n",
            to: installed.directory("relay/words/fr.po"))
        var settings = try TextFile.read(installed.settings)
        try settings.set("templates.directory", to: "words")
        try TextFile.write(settings, to: installed.settings)
        let sent = try await BuiltProgram.twoefay(
            "--config", installed.settings, "sms", "test", "--to", "+4915112345678", "--language", "fr-CA")
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(gateway.asked.last?.query["text"] == "Voici 123456")
    }

    @Test func smsTestReportsWhyNoGatewayAccepted() async throws {
        let gateway = try await TestGateway { _ in .status(403, "Authorization failed for sendsms") }
        let installed = try await installed(gateway)
        let failed = try await BuiltProgram.twoefay(
            "--config", installed.settings, "sms", "test", "--to", "+4915112345678")
        #expect(failed.status == 5 && failed.output.contains("Gateway up: fault (403: the account may not send)"))
        for (number, status) in [("+12025550123", Int32(4)), ("015112345678", 2)] {
            let refused = try await BuiltProgram.twoefay(
                "--config", installed.settings, "sms", "test", "--to", number)
            #expect(refused.status == status)
        }
        #expect(gateway.asked.count == 1)
    }

    @Test func smsTestUsesAMailGateway() async throws {
        let server = try await TestMailServer.start()
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        var settings = try TextFile.read(installed.settings)
        try settings.set("mail.url", to: "smtp://127.0.0.1:\(server.port)")
        try settings.set("mail.from", to: "login@shop.example")
        try settings.set(
            "sms.gateways", to: "[{name: mail, kind: mail, address: \"{number}@sms.example.com\", cost: 0.09}]")
        try settings.set("sms.allow", to: "[\"+49\"]")
        try TextFile.write(settings, to: installed.settings)
        let sent = try await BuiltProgram.twoefay(
            "--config", installed.settings, "sms", "test", "--to", "+4915112345678")
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(sent.output.contains("mail accepted the message: 1 segment, gsm7; it costs 0.09."))
        let mail = try await server.mail()
        #expect(mail.to == ["<4915112345678@sms.example.com>"] && mail.data.contains("123456"))
    }

    @Test func smsTestWithoutGatewayNamesTheSetting() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        let none = try await BuiltProgram.twoefay(
            "--config", installed.settings, "sms", "test", "--to", "+4915112345678")
        #expect(none.status == 3 && none.errors.contains("sms.gateways"))
    }

    @Test func checkFindsInvalidSMSSettings() async throws {
        let gateway = try await TestGateway { _ in .status(202) }
        let installed = try await installed(gateway)
        let right = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(right.status == 0, "\(right.errors)")
        #expect(right.output.contains("Text messages are sent through down, up."))
        _ = try await Child.run("sh", ["-c", "rm kannel.password"], in: installed.directory("relay"))
        let wrong = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(wrong.status == 1 && wrong.errors.contains("kannel.password: No such file"))
    }

    /// Faults that are visible only in the common sender and the password file together.
    @Test func checkFindsInvalidSMPPSettings() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        try TextFile.write(String(repeating: "x", count: 65), to: installed.directory("relay/smpp.password"))
        var settings = try TextFile.read(installed.settings)
        try settings.set(
            "sms.gateways",
            to:
                "[{name: one, kind: smpp, address: \"127.0.0.1:2775\", tls: false, system_id: s, password_file: smpp.password}]"
        )
        try settings.set("sms.allow", to: "[\"+49\"]")
        try TextFile.write(settings, to: installed.settings)
        let long = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(long.status == 1)
        #expect(long.errors.contains("gateway one: password must be at most 64 ASCII characters"), "\(long.errors)")

        try TextFile.write("short", to: installed.directory("relay/smpp.password"))
        #expect(try await BuiltProgram.twoefayd("--config", installed.settings, "--check").status == 0)
        try settings.set("sms.from", to: "The Example Corporation")
        try TextFile.write(settings, to: installed.settings)
        for arguments in [["--check"], []] {
            let wrong = try await Child.run(
                try BuiltProgram.twoefayd.path, ["--config", installed.settings] + arguments)
            #expect(wrong.status == 1)
            #expect(wrong.errors.contains("gateway one: from must be a number"), "\(wrong.errors)")
            #expect(!wrong.errors.contains("Failure("))
        }
    }
}
