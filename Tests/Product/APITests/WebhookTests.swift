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
}
