import Bytes
import Curl
import DeliveryOutcomes
import Domain
import EventLoop
import Log
import Relay
import Templates
import TestSupport
import Testing
import World

@testable import Couriers

/// Real mail servers accept the relay's mails, and Python's email package reads them.
@Suite(.timeLimit(.minutes(5))) struct RealMailServerTests {
    private func send(_ server: SMTPServer, _ messages: [Message]) async throws -> [DeliveryOutcome] {
        let from = try #require(MailAddress("Anmeldung Zoë <login@shop.example.com>"))
        let client = SMTPClient(server, time: SystemTime())
        let courier = MailCourier(
            client: client, from: from, catalog: CurrentCatalog(), time: SystemTime(), log: Log(sink: MemorySink()))
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let outcomes = await group.loops[0].perform {
            var outcomes: [DeliveryOutcome] = []
            for message in messages { outcomes.append(await courier.send(message)) }
            return outcomes
        }
        courier.close()
        return outcomes
    }

    private func message(_ number: Int, _ language: String, to: String = "bob@example.org") throws -> Message {
        let code = Message.Code(
            digits: Secret(utf8: "00421\(number)"), purpose: .login, service: "Käse & Brot", ip: "203.0.113.7",
            place: "Köln")
        return Message(
            id: try #require(OutboxEntryID("\(number)123456789abcdef0123456789abcdef")), to: to,
            website: "Bücher & Mehr",
            name: nil, language: language, content: .code(code), expiresAt: SystemTime().now() + .seconds(330))
    }

    private func isWhole(_ delivered: [DeliveredMail]) {
        // The server delivers several mails at once.
        let mails = delivered.sorted { $0.id < $1.id }
        #expect(
            mails.map(\.subject) == ["Ihr Anmeldecode für Bücher & Mehr", "Your login code for Bücher & Mehr"])
        #expect(
            mails.map(\.id) == [1, 2].map { "<\($0)123456789abcdef0123456789abcdef@shop.example.com>" })
        for (number, mail) in mails.enumerated() {
            #expect(mail.from == "Anmeldung Zoë <login@shop.example.com>")
            #expect(mail.to == "bob@example.org")
            #expect(mail.defects == 0)
            for word in ["\n00421\(number + 1)\n", "5 Minute|5 minutes", "Käse & Brot", "203.0.113.7", "Köln"] {
                #expect(word.split(separator: "|").contains { mail.text.contains($0) }, "\(word)")
            }
        }
        #expect(
            mails.first?.text.contains("Geben Sie den Code nicht weiter. Bücher & Mehr wird Sie nie danach fragen.")
                == true)
        #expect(mails.last?.text.contains("Do not share this code with anyone") == true)
    }

    @Test func aiosmtpdAcceptsMailOverTLSWithLogin() async throws {
        let real = try await AioSMTPServer(user: "relay", password: "pässword")
        var server = SMTPServer(try #require(SMTPAddress("smtp://localhost:\(real.port)")))
        server.extraTrust = real.authority
        server.login = SMTPServer.Login(username: "relay", password: Secret(utf8: "pässword"))
        #expect(
            try await send(server, [try message(1, "de"), try message(2, "en")])
                == [.accepted(by: nil), .accepted(by: nil)])
        isWhole(try await DeliveredMail.inMaildir(real.maildir, 2))

        server.login = SMTPServer.Login(username: "relay", password: Secret(utf8: "wrong"))
        guard case .misconfigured(.service, let reason)? = try await send(server, [try message(3, "de")]).first else {
            Issue.record("the wrong password was taken")
            return
        }
        #expect(reason.hasPrefix("login: 535"))
    }

    @Test(.enabled(if: PostfixServer.canRun)) func postfixAcceptsMail() async throws {
        let real = try await PostfixServer()
        var server = SMTPServer(try #require(SMTPAddress("smtp://127.0.0.1:\(real.port)")))
        server.name = "relay.example.com"
        #expect(
            try await send(server, [try message(1, "de"), try message(2, "en")])
                == [.accepted(by: nil), .accepted(by: nil)])
        isWhole(try await DeliveredMail.inMaildir(real.maildir, 2))

        guard
            case .unregistered(_, let reason)? = try await send(
                server, [try message(3, "de", to: "nobody@example.org")]
            ).first
        else {
            Issue.record("nobody was taken")
            return
        }
        #expect(reason.hasPrefix("recipient: 550"))
        #expect(!reason.contains("nobody@"))
        await real.stop()
    }
}
