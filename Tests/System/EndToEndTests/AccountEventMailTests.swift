import JSON
import TestSupport
import Testing

/// Mails about events of an account, in the user's language, whatever the website and the phone do.
@Suite("Mails about account events", .timeLimit(.minutes(15)), .mayBlock) struct AccountEventMailTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func accountEventMailsReachARealMailbox(_ kind: StoreKind) async throws
    {
        let server = try await AioSMTPServer.knowingTheRelay()
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try server.use(in: &text, files)
        } _: { fixture in
            fixture.record(AioSMTPServer.password)
            let policies = ["--display-name", "Bücher & Mehr", "--guesses", "1"]
            let shop = try await fixture.website("shop", policies, answers: nil)
            var count = 0
            /// Expects the next mail: to this person, with this subject and these texts.
            func expectMail(_ name: String, _ subject: String, _ parts: String...) async throws {
                count += 1
                let mail = try #require(try await DeliveredMail.inMaildir(server.maildir, count).last)
                #expect(mail.to == "\(name)@example.org" && mail.subject == subject)
                #expect(mail.from == "Bücher & Mehr <login@shop.example.com>" && mail.defects == 0)
                for part in parts { #expect(mail.text.contains(part), "\(mail.text)") }
                #expect(mail.text.codeOfAMail == nil)
            }
            let (token, code) = try await shop.register(
                "kim.events", with: ["email": "kim.events@example.org", "language": "de"])
            let phone = try await Phone(in: fixture, token: token, code: code)
            try await expectMail(
                "kim.events", "Ein Telefon wurde Ihrem Konto bei Bücher & Mehr hinzugefügt", "Telefon: Bob's phone\n",
                "Wenn Sie das nicht waren, wenden Sie sich bitte sofort an Bücher & Mehr")
            _ = try await CodeLogin(shop, "kim.events")
            let (challenge, answer) = try await phone.sign("fraud", in: fixture)
            let said = try await phone.client.curl(
                "POST", "/failure", ["challenge": .string(challenge), "answer": .string(answer)])
            #expect(said["login"] == "failure", "\(said)")
            try await expectMail(
                "kim.events", "Ihr Konto bei Bücher & Mehr ist gesperrt", "als nicht von Ihnen gemeldet",
                "\nZeitpunkt: ")
            let gone = try await shop.curl("DELETE", "/user/kim.events/devices/\(phone.device)")
            #expect(gone.status == 204, "\(gone)")
            try await expectMail(
                "kim.events", "Ein Telefon wurde aus Ihrem Konto bei Bücher & Mehr entfernt", "Telefon: Bob's phone\n")

            try await shop.register("ann.events", with: ["email": "ann.events@example.org", "language": "en"])
            let secret: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
            #expect(try await shop.curl("POST", "/user/ann.events/hotp", secret).status == 201)
            let login = try await CodeLogin(shop, "ann.events")
            #expect(try await login.handIn("000000")["reason"] == "locked")
            try await expectMail(
                "ann.events", "Codes for your account at Bücher & Mehr are locked", "Too many wrong codes", "\nTime: ")
        }
    }
}
