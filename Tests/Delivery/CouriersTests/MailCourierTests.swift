import Bytes
import Curl
import DeliveryOutcomes
import Domain
import EventLoop
import JSON
import Log
import QR
import Relay
import Templates
import TestSupport
import Testing
import World

@testable import Couriers

@Suite(.timeLimit(.minutes(5))) struct MailCourierTests {
    private func message(
        to: String = "bob@example.org", website: String = "Bücher & Mehr", language: String? = "de-AT",
        left: Duration = .seconds(299), content: Message.Content? = nil, account: String? = nil
    ) throws -> Message {
        let code = Message.Code(
            digits: Secret(utf8: "042137"), purpose: .login, service: nil, ip: "203.0.113.7", place: "Köln")
        return Message(
            id: try #require(OutboxEntryID("0123456789abcdef0123456789abcdef")), to: to, website: website, name: "Zoë",
            language: language, content: content ?? .code(code),
            accountAddress: account.map { Secret(utf8: $0) }, expiresAt: SystemTime().now() + left)
    }

    private func send(
        _ test: TestMailServer, _ messages: [Message], log: Log = Log(sink: MemorySink()), url: String? = nil,
        trusted: Bool = false, trouble: @escaping @Sendable (String?) -> Void = { _ in }
    ) async throws -> [DeliveryOutcome] {
        var server = SMTPServer(try #require(SMTPAddress(url ?? "smtp://localhost:\(test.port)")))
        if trusted { server.extraTrust = test.authority }
        let client = SMTPClient(server, time: SystemTime())
        let from = try #require(MailAddress("login@shop.example"))
        let courier = MailCourier(client: client, from: from, catalog: CurrentCatalog(), time: SystemTime(), log: log)
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let outcomes = await group.loops[0].perform {
            var outcomes: [DeliveryOutcome] = []
            for message in messages { outcomes.append(await courier.send(message)) }
            return outcomes
        }
        trouble(courier.fault)
        courier.close()
        return outcomes
    }

    @Test(arguments: [("de", "Richten_Sie_Ihr_Telefon"), ("en", "Set_up_your_phone")])
    func activationMailHasCodeLinkAndQRCode(language: String, subject: String) async throws {
        let test = try await TestMailServer.start()
        let link =
            "twoefay://enrol?relay=https://relay.example:8080&website=shop&token=\(String(repeating: "0", count: 32))"
            + "&code=abcdefghijklmnopqrst&pin=\(String(repeating: "p", count: 43))"
        let content = Message.Content.activation(
            Message.Activation(code: Secret(utf8: "abcdefghijklmnopqrst"), link: Secret(utf8: link)))
        #expect(try await send(test, [try message(language: language, content: content)]) == [.accepted(by: nil)])
        let data = try await test.mail().data
        #expect(data.contains(subject))
        #expect(data.contains("\r\nContent-Type: image/png\r\n"))
        // Without the soft line breaks of quoted-printable.
        let text = data.split(separator: "=\r\n", omittingEmptySubsequences: false).joined()
        #expect(text.contains("abcdefghijklmnopqrst\r\n"))
        let encoded = link.split(separator: "=", omittingEmptySubsequences: false).joined(separator: "=3D")
        #expect(text.contains("Link: " + encoded))
        let lines = data.split(separator: "\r\n")
        let image = lines.drop { !$0.hasPrefix("iVBOR") }.prefix { !$0.hasPrefix("--") }.joined()
        #expect(Base64.decode(image) == (try QRCode(link).png()))
    }

    @Test func codeMailUsesTheUsersLanguage() async throws {
        let test = try await TestMailServer.start()
        #expect(try await send(test, [try message()]) == [.accepted(by: nil)])
        let mail = try await test.mail()
        #expect(mail.from == "<login@shop.example>")
        #expect(mail.to == ["<bob@example.org>"])
        #expect(mail.data.contains("\r\nSubject: =?UTF-8?Q?Ihr_Anmeldecode_f=C3=BCr_B=C3=BCcher"))
        #expect(mail.data.contains("\r\nMessage-ID: <0123456789abcdef0123456789abcdef@shop.example>\r\n"))
        #expect(mail.data.contains("\r\nContent-Language: de\r\n"))
        #expect(mail.data.contains("\r\n042137\r\n"))
        #expect(mail.data.contains("4 Minuten g=C3=BCltig"))
        #expect(mail.data.contains("K=C3=B6ln"))
    }

    @Test func accountEventsAreMailed() async throws {
        let test = try await TestMailServer.start()
        let at = try #require(Timestamp(rfc3339: "2026-11-22T01:02:03Z"))
        let messages = try AccountEvent.allCases.map {
            try message(language: "en", content: .announcement($0, device: "Phone of Bob", at: at))
        }
        #expect(try await send(test, messages) == messages.map { _ in .accepted(by: nil) })
        for number in messages.indices {
            #expect(try await test.mail(number + 1).data.contains("2026-11-22 01:02 UTC"))
        }
        #expect(try await test.mail(1).data.contains("Phone of Bob"))
    }

    @Test func mailsHaveTheLinkToTheAccount() async throws {
        let test = try await TestMailServer.start()
        let address = "https://phone.example.com/phone/#account=abc"
        let frozen = Message.Content.announcement(.userFrozen, device: nil, at: SystemTime().now())
        let messages = [try message(account: address), try message(content: frozen, account: address)]
        #expect(try await send(test, messages) == messages.map { _ in .accepted(by: nil) })
        for number in messages.indices {
            let text = try await test.mail(number + 1).data.replacing("=\r\n", with: "")
            #expect(text.contains(" https://phone.example.com/phone/#account=3Dabc\r\n"), "\(text)")
        }
    }

    @Test func retriedMailKeepsItsMessageID() async throws {
        let test = try await TestMailServer.start { $0.faults = [.dot: [.answer("451 4.3.0 later")]] }
        let message = try message()
        let outcomes = try await send(test, [message, message])
        #expect(outcomes == [.retry(after: nil, reason: "content: 451 4.3.0 later"), .accepted(by: nil)])
        let id = { (mail: TestMailServer.Mail) in
            mail.data.split(separator: "\r\n").first { $0.hasPrefix("Message-ID:") }
        }
        let (first, second) = (id(try await test.mail(1)), id(try await test.mail(2)))
        #expect(first != nil)
        #expect(first == second)
    }

    @Test func connectionLostAfterTheFinalDotIsAmbiguous() async throws {
        let test = try await TestMailServer.start { $0.faults = [.dot: [.drop]] }
        guard case .ambiguous? = try await send(test, [try message()]).first else {
            Issue.record("not ambiguous")
            return
        }
    }

    @Test func expiredOrUnaddressedMailIsNotSent() async throws {
        let test = try await TestMailServer.start()
        let messages = [
            try message(left: .seconds(-1)), try message(to: "jörg@example.org"), try message(to: "a@b.example\r\nx"),
        ]
        #expect(
            try await send(test, messages) == [
                .misconfigured(.message, reason: "expired unsent"),
                .unregistered(since: nil, reason: "the address cannot be used in SMTP"),
                .unregistered(since: nil, reason: "the address cannot be used in SMTP"),
            ])
        #expect(test.said.isEmpty)
    }

    @Test func serverFailureIsNotBlamedOnTheRecipient() async throws {
        let sink = MemorySink()
        let log = Log(sink: sink)
        let nobody = try await TestMailServer.start {
            $0.faults = [.recipient: [.answer("550 5.1.1 <bob@example.org> who?")]]
        }
        let refused = try await send(nobody, [try message()], log: log) { #expect($0 == nil) }
        #expect(refused == [.unregistered(since: nil, reason: "recipient: 550 5.1.1 … who?")])
        #expect(sink.lines.isEmpty)

        let untrusted = try await TestMailServer.start { $0.tls = .implicit }
        let url = "smtps://localhost:\(untrusted.port)"
        guard
            case .misconfigured(.service, _)? = try await send(
                untrusted, [try message()], log: log, url: url, trouble: { #expect($0 != nil) }
            ).first
        else {
            Issue.record("not undeliverable")
            return
        }
        #expect(sink.lines.contains { $0.contains("mail.server.refuses") && $0.contains("level=error") })
        #expect(!sink.lines.contains { $0.contains("bob@") || $0.contains("042137") })
    }

    /// A mail that finds the queue full says nothing about the server.
    @Test func serverFaultPersistsUntilASuccess() async throws {
        let test = try await TestMailServer.start { $0.faults = [.greeting: [.drop], .sender: [.hang]] }
        var server = SMTPServer(try #require(SMTPAddress("smtp://localhost:\(test.port)")))
        (server.connections, server.waiting) = (1, 1)
        let courier = MailCourier(
            client: SMTPClient(server, time: SystemTime()), from: try #require(MailAddress("login@shop.example")),
            catalog: CurrentCatalog(), time: SystemTime(), log: Log(sink: MemorySink()))
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let message = try message()
        let (first, trouble) = await group.loops[0].perform {
            _ = await courier.send(message)
            let outcomes = AsyncStream<DeliveryOutcome>.makeStream()
            let send = { @Sendable in
                EventLoop.current?.spawn {
                    let outcome = await courier.send(message)
                    outcomes.continuation.yield(outcome)
                }
            }
            send()
            try? await test.hears(.sender)
            send()
            send()
            var ended = outcomes.stream.makeAsyncIterator()
            let first = await ended.next()
            let trouble = courier.fault
            courier.close()
            _ = await ended.next()
            _ = await ended.next()
            return (first, trouble)
        }
        #expect(first == .retry(after: nil, reason: "connection: too many queued mails"))
        #expect(trouble != nil)
    }
}
