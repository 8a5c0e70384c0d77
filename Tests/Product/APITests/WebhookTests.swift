import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

/// Webhooks of ended logins, compared with the answer of `/auth`.
struct WebhookTests {
    enum End: CaseIterable {
        case approved, denied, wrongNumber, cancelled, superseded, expired
    }

    @Test(arguments: End.allCases) func loginDecidedWebhookEqualsAuthAnswer(end: End) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site(
            "shop", ["login-limit": "1000"], webhook: "https://shop.example/hook")
        let (token, phone) = try await shop.enrol("ada")
        let asked = try await shop.login("ada")
        let challenge = asked.challenge
        let number = try #require(asked.number)
        switch end {
        case .approved:
            _ = await phone.send(
                "POST", "/success", ["challenge": .string(challenge), "number": .string(number)])
        case .denied: _ = await phone.send("POST", "/failure", ["challenge": .string(challenge)])
        case .wrongNumber:
            let wrong = number == "11" ? "12" : "11"
            _ = await phone.send("POST", "/success", ["challenge": .string(challenge), "number": .string(wrong)])
        case .cancelled: _ = await shop.send("DELETE", "/challenge/\(challenge)")
        case .superseded: _ = try await shop.login("ada")
        case .expired:
            rig.relay.time.advance(by: .seconds(3600))
            _ = await shop.send("POST", "/auth", ["challenge": .string(challenge)])
        }
        try await rig.relay.on { relay in await relay.deliverWebhooks() }
        await rig.relay.settled()
        let bodies = try rig.relay.webhooks.sent.compactMap { try JSONReader.read($0.body).object }
            .filter { $0["type"] == "login.decided" }
        let auth = await shop.send("POST", "/auth", ["challenge": .string(challenge)])
        var expected = try #require(try JSONReader.read(auth.body).object)
        #expect(auth.status == 200 && expected["login"] != "wait")
        expected.set("token", .string(token))
        #expect(bodies.map { $0["data"]?.object } == [expected])
    }

    /// The webhook about the end of a login carries the trace of its `/login` on, whoever ended it.
    @Test(arguments: ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", nil])
    func webhookCarriesTheTraceOfTheLogin(trace: String?) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", webhook: "https://shop.example/hook")
        let (_, phone) = try await shop.enrol("ada")
        let fields = trace.map { [("traceparent", $0)] } ?? []
        let asked = await shop.send("POST", "/login", ["username": "ada"], fields: fields)
        let challenge = try #require(try JSONReader.read(asked.body).object?["challenge"])
        let other = "00-11111111111111111111111111111111-2222222222222222-00"
        let ended = await phone.send("POST", "/failure", ["challenge": challenge], fields: [("traceparent", other)])
        #expect(ended.status == 200)
        try await rig.relay.on { relay in await relay.deliverWebhooks() }
        await rig.relay.settled()
        let decided = try rig.relay.webhooks.sent.filter {
            try JSONReader.read($0.body).object?["type"] == "login.decided"
        }
        #expect(
            decided.map { $0.fields.filter { $0.name == "traceparent" }.map(\.value) } == [trace.map { [$0] } ?? []])
    }
}
