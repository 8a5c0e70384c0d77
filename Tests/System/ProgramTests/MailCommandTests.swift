import Glibc
import JSON
import TestSupport
import Testing

@Suite("Mail", .timeLimit(.minutes(15)), .mayBlock) struct MailCommandTests {
    private func installed(_ values: [String: String]) async throws -> Installed {
        let installed = try await Installed()
        var settings = try text(installed.settings)
        for (key, value) in values { try settings.set(key, to: value) }
        try TextFile.write(settings, to: installed.settings)
        return installed
    }

    @Test func mailTestUsesTheGivenLanguage() async throws {
        let server = try await TestMailServer.start()
        let installed = try await installed([
            "mail.url": "smtp://127.0.0.1:\(server.port)", "mail.from": "login@shop.example",
        ])
        let sent = try await BuiltProgram.twoefay(
            "--config", installed.settings, "mail", "test", "--to", "bob@example.org", "--language", "de-AT")
        #expect(sent.status == 0, "\(sent.errors)")
        #expect(sent.output.contains("accepted the mail for bob@example.org"))
        #expect(sent.output.contains("login: accepted: 250 2.0.0 queued as 1"))
        let mail = try await server.mail()
        #expect(mail.data.contains("Ihr Code"))
        #expect(mail.data.contains("\r\n123456\r\n"))
        let all = try await BuiltProgram.twoefay(
            "--config", installed.settings, "mail", "test", "--to", "bob@example.org", "--what", "all", "--json"
        ).json
        #expect(all["mails"]?.array?.count == 20)
        #expect(all["mails"]?.array?.allSatisfy { $0.object?["outcome"] == "accepted" } == true)
    }

    @Test func mailTestReportsTheServersReply() async throws {
        let server = try await TestMailServer.start {
            $0.faults = [.recipient: [.answer("550 5.1.1 <bob@example.org> who?"), .answer("550 5.1.1 who?")]]
        }
        let installed = try await installed([
            "mail.url": "smtp://127.0.0.1:\(server.port)", "mail.from": "login@shop.example",
        ])
        let arguments = ["--config", installed.settings, "mail", "test", "--to", "bob@example.org"]
        let result = try await Child.run(try BuiltProgram.twoefay.path, arguments)
        #expect(result.status == 1)
        #expect((result.output + result.errors).contains("login: refused, recipient: 550 5.1.1 <bob@example.org> who?"))
        #expect((result.output + result.errors).contains("Check that the address exists"))
        let json = try await Child.run(try BuiltProgram.twoefay.path, arguments + ["--json"])
        let line = try #require(try JSONReader.read(Array((json.output + json.errors).utf8)).object)
        let mail = try #require(line["mails"]?.array?.first?.object)
        #expect(mail["outcome"] == "refused")
        #expect(mail["stage"] == "recipient")
        #expect(mail["code"] == 550)
    }

    @Test func mailTestChecksTheSettings() async throws {
        let off = try await Installed()
        let none = try await BuiltProgram.twoefay("--config", off.settings, "mail", "test", "--to", "bob@example.org")
        #expect(none.status == 3)
        #expect(none.errors.contains("Set mail.url and mail.from"))
        let nobody = try await BuiltProgram.twoefay("--config", off.settings, "mail", "test", "--to", "bob")
        #expect(nobody.status == 2)

        let installed = try await installed([
            "mail.url": "smtp://mail.example.com", "mail.from": "login@shop.example", "mail.username": "relay",
            "mail.password_file": "mail.password", "templates.directory": "words",
        ])
        let relay = installed.directory("relay")
        mkdir("\(relay)/words", 0o755)
        try TextFile.write("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"Bonjour\"\n", to: "\(relay)/words/fr.po")
        let bad = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(bad.status == 1)
        #expect(bad.errors.contains("relay/mail.password: No such file"), "\(bad.errors)")
        #expect(bad.errors.contains("relay/words/fr.po:1: sms.login must contain {code}"), "\(bad.errors)")

        try TextFile.write("two\nlines\n", to: "\(relay)/mail.password")
        try TextFile.write(
            "msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"Bonjour {code}\"\n", to: "\(relay)/words/fr.po")
        let lines = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(lines.errors.contains("must hold a password in one line"), "\(lines.errors)")

        try TextFile.write("s3cret\n", to: "\(relay)/mail.password")
        let good = try await BuiltProgram.twoefayd("--config", installed.settings, "--check", "--json")
        #expect(try good.json["mail"] == "smtp://mail.example.com")
        #expect(try good.json["languages"] == ["de", "en", "fr"])
        #expect(!good.output.contains("s3cret"))
    }

    @Test func printedTemplateFileIsAccepted() async throws {
        let shown = try await BuiltProgram.twoefay("templates", "show", "--language", "de")
        #expect(shown.status == 0, "\(shown.errors)")
        let installed = try await installed(["templates.directory": "words"])
        mkdir(installed.directory("relay/words"), 0o755)
        try TextFile.write(shown.output, to: installed.directory("relay/words/nl.po"))
        let checked = try await BuiltProgram.twoefayd("--config", installed.settings, "--check")
        #expect(checked.output.contains("available in de, en, nl."), "\(checked.errors)")
        let unknown = try await BuiltProgram.twoefay("templates", "show", "--language", "fr")
        #expect(unknown.status == 3)
    }
}
