import Bytes
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// Enrolment with a ceremony, over the wire: the website uses RelayClient, the operator `twoefay`, and
/// the phone is `twoefay phone`, which gets its link from a real mail server.
@Suite("Enrolment with a ceremony", .timeLimit(.minutes(15)), .mayBlock) struct CeremonyTests {
    private static func start(_ kind: StoreKind, _ server: AioSMTPServer) async throws -> RunningRelay {
        try await RunningRelay.start(kind) { text in
            try text.set("mail.url", to: "smtp://localhost:\(server.port)")
            try text.set("mail.from", to: "login@shop.example.com")
            try text.set("mail.username", to: "relay")
            try text.set("mail.password_file", to: server.passwordFile)
            try text.set("mail.ca", to: server.authorityFile)
        }
    }

    /// Returns the link of a mail, which a reader shows in one line.
    private func link(_ mail: DeliveredMail) throws -> String {
        try #require(
            mail.text.split(separator: "\n").first { $0.hasPrefix("Link: ") }.map { String($0.dropFirst(6)) },
            "\(mail.text)")
    }

    /// Waits until `count` mails with this subject have arrived, besides others, and returns the
    /// last.
    private func mail(_ subject: String, _ count: Int, at server: AioSMTPServer) async throws -> DeliveredMail {
        var mails = try await DeliveredMail.inMaildir(server.maildir, count)
        while mails.filter({ $0.subject == subject }).count < count {
            mails = try await DeliveredMail.inMaildir(server.maildir, mails.count + 1)
        }
        return try #require(mails.last { $0.subject == subject })
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func mailedActivationBindsThePhone(_ kind: StoreKind) async throws {
        let server = try await AioSMTPServer(user: "relay", password: "password")
        let shop = try await RealShop(try await Self.start(kind, server), ["--enrolment", "letter"])
        let registered = try await shop.client.register("ada", email: "ada@example.org", language: "de")
        #expect(registered.activation == nil && !registered.awaitsIdentity)
        #expect(registered.mailed?.sentTo == "a…@example.org")
        let first = try #require(try await DeliveredMail.inMaildir(server.maildir, 1).last)
        #expect(first.to == "ada@example.org" && first.defects == 0)
        #expect(first.subject == "Richten Sie Ihr Telefon für The Shop ein")
        #expect(first.image.hasPrefix("89504e470d0a1a0a"))
        // The person broke off. The next login says what is missing.
        let login = try await shop.client.ask(LoginRequest(username: "ada"))
        #expect(!login.hasPhone && login.missing == [.factor])
        #expect(try await shop.client.user("ada").missing == [.factor])
        #expect(try await shop.client.mailActivation(to: "ada").sentTo == "a…@example.org")
        // The login above may have sent a mail with a code.
        let second = try await mail(first.subject, 2, at: server)
        // The earlier mail is void.
        await #expect(throws: Child.Problem.self) { try await shop.bind("ada", try link(first)) }
        try await shop.bind("ada", try link(second))
        await #expect(throws: Child.Problem.self) { try await shop.bind("eve", try link(second)) }
        let approved = try await shop.client.ask(LoginRequest(username: "ada"))
        #expect(approved.hasPhone && approved.missing == [])
        async let told = shop.client.wait(for: approved)
        try await shop.answer("approve", approved)
        #expect(try await told.isSuccess)
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func operatorConfirmsTheIdentityBeforeTheMail(_ kind: StoreKind) async throws {
        let server = try await AioSMTPServer(user: "relay", password: "password")
        let relay = try await Self.start(kind, server)
        let shop = try await RealShop(relay, ["--enrolment", "confirmed", "--factors", "push"])
        let registered = try await shop.client.register("ada", email: "ada@example.org")
        #expect(registered.activation == nil && registered.mailed == nil && registered.awaitsIdentity)
        #expect(try await shop.client.ask(LoginRequest(username: "ada")).missing == [.identity, .factor])
        let refused = await #expect(throws: CallFault.self) { try await shop.client.mailActivation(to: "ada") }
        #expect(refused?.problem?.status == 403)

        func tool(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(
                try BuiltProgram.twoefay.path,
                ["--config", relay.settings, "user"] + arguments + ["--website", "shop", "--json"])
        }
        func json(_ ended: Child.Ended) throws -> JSONObject {
            try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
        }
        #expect(try await tool("activate", "ada").status == 4)
        #expect(try await tool("confirm-identity", "ada", "--document", "passport").status == 2)
        #expect(try await tool("confirm-identity", "eve", "--by", "Ben", "--document", "passport").status == 3)
        // A locked user could not use the code.
        #expect(try await tool("lock", "ada").status == 0)
        let locked = try await tool("confirm-identity", "ada", "--by", "Ben Berg", "--document", "passport")
        #expect(try json(locked)["sent_to"]?.isNull == true && json(locked)["expires_at"]?.isNull == true)
        #expect(try relay.count("SELECT count(*) FROM activation") == 0)
        #expect(try await tool("unlock", "ada").status == 0)
        let confirmed = try await tool("confirm-identity", "ada", "--by", "Ben Berg", "--document", "passport")
        #expect(confirmed.status == 0, "\(confirmed.errors)")
        #expect(try json(confirmed)["sent_to"] == "ada@example.org")
        let shown = try json(try await tool("show", "ada"))["identity"]?.object
        #expect(shown?["by"] == "Ben Berg" && shown?["document"] == "passport")
        #expect(
            try relay.count(
                "SELECT count(*) FROM AuditTrail WHERE event = 'user.identity' AND note = 'Ben Berg: passport'") == 2)
        // The lock above is mailed as well, before or after this one.
        let activation = try await mail("Set up your phone for The Shop", 1, at: server)
        try await shop.bind("ada", try link(activation))
        #expect(try await shop.client.user("ada").missing == [])
        // With a phone, another confirmation is only recorded.
        let again = try await tool("confirm-identity", "ada", "--by", "Ben Berg", "--document", "passport")
        #expect(try json(again)["sent_to"]?.isNull == true)
    }
}
