import EventLoop
import JSON
import TestSupport
import Testing

/// Mail servers and gateways that hang or are down: other messages are not delayed, no code is lost, and no message
/// has two ids.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct CourierOutageTests {
    private func fixture(_ mails: HoldingMailServer, _ gateways: [(String, TestGateway)]) async throws -> Fixture {
        let list = gateways.map { name, gateway in
            "{name: \(name), kind: http, url: \"\(gateway.url)/?to={number}&text={text}&id={id}\"}"
        }
        return try await Fixture.start { settings in
            try settings.set("mail.url", to: "smtp://127.0.0.1:\(mails.port)")
            try settings.set("mail.from", to: "login@example.org")
            try settings.set("sms.allow", to: "[\"+49\"]")
            try settings.set("sms.gateways", to: "[\(list.joined(separator: ", "))]")
        }
    }

    /// Starts a login of a new user with that address or number.
    private func login(_ number: Int, by kind: String, in fixture: Fixture) async throws -> String {
        var user: JSONObject = ["username": .string("user-\(number)")]
        if kind == "mail" {
            user.set("email", .string(address(number)))
        } else {
            user.set("phone", .string(phone(number)))
        }
        return try await fixture.login(
            try Fixture.registered(try await fixture.shop.send("POST", "/register", user)).token
        )
        .challenge
    }

    private func address(_ number: Int) -> String { "user-\(number)@example.org" }
    private func phone(_ number: Int) -> String { "+4915112345\(100 + number)" }

    private func isIn(_ challenge: String, with code: String?, by factor: String, _ fixture: Fixture) async throws {
        let code = try #require(code)
        let result = try await fixture.shop.send(
            "POST", "/backup", ["challenge": .string(challenge), "otp": .string(code)])
        #expect(result["login"] == "success" && result["factor"] == factor, "\(result)")
    }

    private func code(_ asked: TestGateway.Asked?) -> String? {
        asked?.query["text"]?.split(separator: " ").first.map(String.init)
    }

    private func until(_ condition: () async throws -> Bool) async throws {
        while try await !condition() {
            await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(50)) }
        }
    }

    @Test func hangingMailServerDelaysOnlyMails() async throws {
        let mails = try await HoldingMailServer.start()
        let gateway = try await TestGateway { _ in .status(200) }
        let fixture = try await fixture(mails, [("one", gateway)])
        mails.freeze()
        // More mails than there are connections.
        var waiting: [String] = []
        for number in 0..<6 { waiting.append(try await login(number, by: "mail", in: fixture)) }
        let other = try await login(6, by: "sms", in: fixture)
        await gateway.isAsked(1)
        try await isIn(other, with: code(gateway.asked.first), by: "sms", fixture)
        #expect(mails.mails.isEmpty)
        mails.thaw()
        for (number, challenge) in waiting.enumerated() {
            try await until { try await fixture.auth(challenge).steps.last == "sent" }
            try await mails.release()
            let mine = mails.mails.filter { $0.to == self.address(number) }
            #expect(Set(mine.map(\.id)).count == 1 && Set(mine.map(\.code)).count == 1, "\(mine)")
            try await isIn(challenge, with: mine.first?.code, by: "mail", fixture)
        }
    }

    @Test func secondGatewayTakesOverFromTheFirst() async throws {
        let mails = try await HoldingMailServer.start()
        let (first, second) = (try await TestGateway { _ in .status(200) }, try await TestGateway { _ in .status(200) })
        let fixture = try await fixture(mails, [("first", first), ("second", second)])
        await first.goDown()
        var number = 0
        func next() async throws {
            let challenge = try await login(number, by: "sms", in: fixture)
            try await until { try await fixture.auth(challenge).steps.last == "sent" }
            let mine = (first.asked + second.asked).filter { "+\($0.query["to"] ?? "")" == self.phone(number) }
            #expect(mine.count == 1, "\(mine)")
            try await isIn(challenge, with: code(mine.first), by: "sms", fixture)
            number += 1
        }
        for _ in 0..<4 { try await next() }
        #expect(first.asked.isEmpty && second.asked.count == 4)
        try await first.comeBack()
        // The gateway is not used for some seconds, and then gets all messages again.
        while first.asked.isEmpty { try await next() }
        let before = second.asked.count
        for _ in 0..<3 { try await next() }
        #expect(first.asked.count == 4 && second.asked.count == before)
        #expect(Set((first.asked + second.asked).map { $0.query["id"] ?? "" }).count == number)
    }
}
