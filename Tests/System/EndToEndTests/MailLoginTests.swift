import FakePushServices
import HTTP2
import JSON
import TestSupport
import Testing
import World

/// Logins with codes that a real mail server delivered to a mailbox.
@Suite("A code by mail", .timeLimit(.minutes(15)), .mayBlock) struct MailLoginTests {
    /// The texts of a mail in one language.
    private struct Words: Sendable {
        let subject: String
        let lines: [String]

        static let german = Words(
            subject: "Ihr Anmeldecode für Bücher & Mehr",
            lines: [
                "Ihr Code für die Anmeldung bei Bücher & Mehr:",
                "Der Code ist 5 Minuten gültig und kann nur einmal verwendet werden.",
                "Dienst: Käse & Brot", "IP-Adresse: 203.0.113.7",
                "Geben Sie den Code nicht weiter. Bücher & Mehr wird Sie nie danach fragen.",
            ])
        static let english = Words(
            subject: "Your login code for Bücher & Mehr",
            lines: [
                "Your code for logging in to Bücher & Mehr:",
                "The code is valid for 5 minutes and can be used only once.",
                "Service: Käse & Brot", "IP address: 203.0.113.7",
                "Do not share this code with anyone. Bücher & Mehr will never ask you for it.",
            ])
    }

    private static let request: JSONObject = ["service": "Käse & Brot", "ip": "203.0.113.7", "expires_in": 345]

    private func shop(_ fixture: Fixture) async throws -> APIClient {
        try await fixture.website("shop", ["--display-name", "Bücher & Mehr"])
    }

    /// Returns the code, after a check of the recipient and the texts.
    private func code(
        in mail: DeliveredMail?, to: String, _ words: Words, _ location: SourceLocation = #_sourceLocation
    ) throws -> String {
        let mail = try #require(mail, sourceLocation: location)
        #expect(mail.to == to && mail.defects == 0, sourceLocation: location)
        #expect(mail.from == "Anmeldung Zoë <login@shop.example.com>", sourceLocation: location)
        #expect(mail.subject == words.subject, sourceLocation: location)
        let lines = mail.text.split(separator: "\n").map(String.init)
        for line in words.lines { #expect(lines.contains(line), "\(mail.text)", sourceLocation: location) }
        return try #require(mail.text.codeOfAMail, sourceLocation: location)
    }

    /// The website's language for the user, the browser's languages, the person's own choice, and
    /// the expected language of the mail.
    private static let people: [(name: String, language: String?, browser: String?, own: String?, words: Words)] = [
        ("bob.german", "de", nil, nil, .german), ("ann.austrian", "de-AT, de;q=0.8, en;q=0.5", nil, nil, .german),
        ("eve.british", "en-GB", "de", nil, .english), ("luc.french", "fr-FR, en;q=0.7, de;q=0.3", nil, nil, .english),
        ("joe.silent", nil, nil, nil, .english), ("ida.swiss", nil, "de-CH, fr;q=0.8", nil, .german),
        ("max.strange", nil, "not a language", nil, .english), ("amy.chooser", "en", "en", "de", .german),
    ]

    @Test(arguments: [StoreKind.file, .mariadb])
    func codeMailedThroughAiosmtpdLogsIn(_ kind: StoreKind) async throws {
        let server = try await AioSMTPServer(user: "relay", password: "pässword")
        let apple = try await TestAPNs.start()
        let files = try TemporaryDirectory()
        try TextFile.write(server.authority, to: files("mail-ca.pem"))
        try TextFile.write("pässword\n", to: files("mail.password"))
        try await Fixture.run(kind) { text throws in
            try apple.set(in: &text)
            try text.set("mail.url", to: "smtp://localhost:\(server.port)")
            try text.set("mail.from", to: "Anmeldung Zoë <login@shop.example.com>")
            try text.set("mail.username", to: "relay")
            try text.set("mail.password_file", to: files("mail.password"))
            try text.set("mail.ca", to: files("mail-ca.pem"))
        } _: { fixture in
            fixture.record("pässword")
            let shop = try await shop(fixture)
            for (number, person) in Self.people.enumerated() {
                let address = "\(person.name)@example.org"
                var about: JSONObject = ["email": .string(address)]
                if let language = person.language { about.set("language", .string(language)) }
                try await shop.register(person.name, with: about)
                let before = SystemTime().now()
                let login = try await CodeLogin(
                    shop, person.name, Self.request,
                    fields: (person.browser.map { ["Accept-Language": $0] } ?? [:])
                        .merging(person.own.map { ["Accept-User-Language": $0] } ?? [:]) { $1 })
                #expect(login.asked["login"] == "unverified" && login.factor == "mail")
                try await fixture.relay.logged("event=mail.accepted challenge=\(login.challenge)")
                let result = try await login.result()
                #expect(result["login"] == "wait" && result.steps == "mail sent", "\(result)")
                #expect(result.stepTimes.count == 1)
                #expect(result.stepTimes.allSatisfy { (before...SystemTime().now()).contains($0) })
                let mails = try await DeliveredMail.inMaildir(server.maildir, number + 1)
                let code = try code(in: mails.last, to: address, person.words)
                try await login.succeeds(by: "mail", worth: "low", code)
                // The code works only once.
                #expect(try await login.handIn(code).status == 409)
            }
            try await afterAPushThatCameToNothing(fixture, shop, apple, server, seen: Self.people.count)
        }
        await apple.service.stop()
    }

    /// A push that cannot be delivered is followed by the mail, and the answer of either counts.
    private func afterAPushThatCameToNothing(
        _ fixture: Fixture, _ shop: APIClient, _ apple: TestAPNs, _ server: AioSMTPServer, seen: Int
    ) async throws {
        apple.service.script("dead", .refuse(.unregistered), repeatsLast: true)
        apple.service.script("cafe", .reset(.internalError), repeatsLast: true)
        for (number, (push, state)) in [("dead", "refused"), ("cafe", "undeliverable")].enumerated() {
            let (name, address) = ("kim.\(push)", "kim.\(push)@example.org")
            let (token, code) = try await shop.register(
                name, with: ["email": .string(address), "language": "de"])
            _ = try await Phone(in: fixture, token: token, code: code, pushToken: "\(push)0123456789abcdef")
            let login = try await CodeLogin(shop, name, Self.request)
            #expect(login.asked["login"] == "verified" && login.factor == "push")
            try await fixture.relay.logged("event=mail.accepted challenge=\(login.challenge)")
            let result = try await login.result()
            #expect(result["login"] == "wait" && result["factor"] == "mail", "\(result)")
            let pushed = try #require(result["steps"]?.array?.first?.object)
            #expect(pushed["factor"] == "push" && pushed["state"]?.string == state, "\(result)")
            #expect(result.steps.hasSuffix(", mail sent"))
            #expect(result.stepTimes.count == 2 && result.stepTimes == result.stepTimes.sorted())
            // The other mail reports the new phone.
            let mails = try await DeliveredMail.inMaildir(server.maildir, seen + 2 * (number + 1))
                .filter { $0.to == address }
            let subjects = [Words.german.subject, "Ein Telefon wurde Ihrem Konto bei Bücher & Mehr hinzugefügt"]
            #expect(mails.map(\.subject).sorted() == subjects.sorted())
            let mail = mails.first { $0.subject == Words.german.subject }
            try await login.succeeds(by: "mail", worth: "low", try self.code(in: mail, to: address, .german))
        }
    }

    @Test(.enabled(if: PostfixServer.canRun)) func codeMailedThroughPostfixLogsIn() async throws {
        let server = try await PostfixServer()
        try await Fixture.run { text throws in
            // The server requires a name with a domain.
            try text.set("origin", to: "https://login.example.org:8080")
            try text.set("mail.url", to: "smtp://127.0.0.1:\(server.port)")
            try text.set("mail.from", to: "Anmeldung Zoë <login@shop.example.com>")
        } _: { fixture in
            let shop = try await shop(fixture)
            try await shop.register("bob.postfix", with: ["email": "bob@example.org", "language": "de"])
            let languages: [(JSONValue, Words)] = [("de", .german), ("en-US, de;q=0.2", .english), (.null, .english)]
            for (number, (language, words)) in languages.enumerated() {
                let changed = try await shop.curl("PATCH", "/user/bob.postfix", ["language": language])
                #expect(changed.status == 200, "\(changed)")
                let login = try await CodeLogin(shop, "bob.postfix", Self.request)
                let mails = try await DeliveredMail.inMaildir(server.maildir, number + 1)
                let code = try code(in: mails.last, to: "bob@example.org", words)
                try await login.succeeds(by: "mail", worth: "low", code)
            }
            // The server has no such mailbox: the address is refused, and the user has no other factor.
            try await shop.register("zoe.postfix", with: ["email": "zoe@example.org"])
            let login = try await CodeLogin(shop, "zoe.postfix")
            try await fixture.relay.logged("event=mail.refused challenge=\(login.challenge)")
            let result = try await login.result()
            #expect(result["login"] == "wait" && result.steps.hasPrefix("mail refused (recipient: 550"), "\(result)")
        }
        await server.stop()
    }
}
