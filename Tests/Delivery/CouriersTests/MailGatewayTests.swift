import Bytes
import Curl
import EventLoop
import SMS
import TestSupport
import Testing
import World

@testable import Couriers

@Suite(.timeLimit(.minutes(5))) struct MailGatewayTests {
    private static let message = SMSMessage(
        id: "0123456789abcdef0123456789abcdef", to: "+4915112345678", text: "Ihr Code für Bücher & Mehr: 042137")

    private func send(
        _ server: SMTPServer, _ address: String = "{number}@sms.example.com", subject: String? = nil,
        body: String = "{text}", within limit: Duration = .seconds(120)
    ) async throws -> GatewayOutcome {
        let form = MailGateway.Form(
            address: try RequestTemplate(address), subject: try subject.map { try RequestTemplate($0) },
            body: try RequestTemplate(body))
        let gateway = MailGateway(
            name: "mail", form: form, from: try #require(MailAddress("login@shop.example")), username: "shop",
            password: Secret(utf8: "s3cret"), client: SMTPClient(server, time: SystemTime()), time: SystemTime())
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let outcome = await group.loops[0].perform { await gateway.send(Self.message, within: limit) }
        await gateway.close()
        return outcome
    }

    private func server(_ test: TestMailServer) throws -> SMTPServer {
        SMTPServer(try #require(SMTPAddress("smtp://localhost:\(test.port)")))
    }

    @Test func realServerAcceptsSMSMailOverTLSWithLogin() async throws {
        let real = try await AioSMTPServer(user: "relay", password: "pässword")
        var server = SMTPServer(try #require(SMTPAddress("smtp://localhost:\(real.port)")))
        server.extraTrust = real.authority
        server.login = SMTPServer.Login(username: "relay", password: Secret(utf8: "pässword"))
        #expect(try await send(server) == .accepted)
        let mail = try #require(try await DeliveredMail.inMaildir(real.maildir).first)
        #expect(mail.to == "4915112345678@sms.example.com" && mail.from == "login@shop.example")
        #expect(mail.text == "Ihr Code für Bücher & Mehr: 042137\n" && mail.defects == 0)
        // Every attempt has the message's id, so a receiver can recognise a repetition.
        #expect(mail.id == "<0123456789abcdef0123456789abcdef@shop.example>")
        // Python's value for a missing field.
        #expect(mail.subject == "None")
    }

    @Test func mailGatewayTemplateIsFilledIn() async throws {
        let real = try await AioSMTPServer(user: "relay", password: "p")
        var server = SMTPServer(try #require(SMTPAddress("smtp://localhost:\(real.port)")))
        server.extraTrust = real.authority
        server.login = SMTPServer.Login(username: "relay", password: Secret(utf8: "p"))
        let outcome = try await send(
            server, "{to}@sms.example.com", subject: "{username} {id}",
            body: "user:{username}\npassword:{password}\nto:{number}\ntext:{text}")
        #expect(outcome == .accepted)
        let mail = try #require(try await DeliveredMail.inMaildir(real.maildir).first)
        #expect(mail.to == "+4915112345678@sms.example.com")
        #expect(mail.subject == "shop 0123456789abcdef0123456789abcdef")
        #expect(
            mail.text == """
                user:shop
                password:s3cret
                to:4915112345678
                text:Ihr Code für Bücher & Mehr: 042137

                """)
    }

    @Test(arguments: [
        // Another gateway may accept what this one refuses.
        (TestMailServer.Verb.recipient, "550 5.1.1 <4915112345678@sms.example.com> who?", GatewayOutcome.Word.unsuited),
        (.dot, "554 5.7.1 looks like spam", .unsuited), (.recipient, "451 4.7.1 greylisted", .busy),
        (.sender, "553 5.7.1 not you", .fault), (.dot, "452 4.3.1 full", .busy),
    ])
    func serverReplyDecidesTheOutcome(_ verb: TestMailServer.Verb, _ said: String, _ word: GatewayOutcome.Word)
        async throws
    {
        let test = try await TestMailServer.start { $0.faults = [verb: [.answer(said)]] }
        let outcome = try await send(try server(test))
        #expect(outcome.word == word, "\(outcome)")
        // The reason contains neither a number nor an address.
        #expect(outcome.reason?.contains("4915112345678") == false, "\(outcome)")
    }

    @Test func ambiguousSMSIsNotSentThroughAnotherGateway() async throws {
        let test = try await TestMailServer.start { $0.faults = [.dot: [.drop]] }
        #expect(try await send(try server(test)).word == .ambiguous)
        let early = try await TestMailServer.start { $0.faults = [.data: [.drop]] }
        #expect(try await send(try server(early)).word == .down)
    }

    @Test func unreachableMailServerIsDown() async throws {
        let port = try FreePort()
        let server = SMTPServer(try #require(SMTPAddress("smtp://127.0.0.1:\(port.port)")))
        #expect(try await send(server).word == .down)
        // An extra authority makes TLS required even on this machine, and this server offers none.
        let test = try await TestMailServer.start()
        var untrusting = try self.server(test)
        untrusting.extraTrust = test.authority
        #expect(try await send(untrusting).word == .fault)
    }
}
