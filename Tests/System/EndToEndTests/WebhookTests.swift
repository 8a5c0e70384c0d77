import JSON
import TestSupport
import Testing

/// Webhooks of the real programs to a third-party receiver.
@Suite(
    "Webhooks to a receiver", .timeLimit(.minutes(15)), .mayBlock,
    .enabled(if: TestWebhookServer.isInstalled, "standardwebhooks is not installed; run: dev/need test"))
struct WebhookTests {
    /// Runs a test with a shop whose webhooks go to that receiver, which knows the secret from `website add`.
    private func run(
        _ kind: StoreKind, _ policies: [String] = [],
        _ test: (Fixture, APIClient, TestWebhookServer) async throws -> Void
    ) async throws {
        let receiver = try await TestWebhookServer()
        try await Fixture.run(kind) { text throws in
            try text.set("webhooks.allow", to: "127.0.0.0/8")
        } _: { fixture in
            let shop = try await fixture.website("shop", ["--webhook", receiver.url] + policies, answers: nil)
            let secret = try TextFile.read(fixture.relay.directory("shop.secret"))
            fixture.record(String(secret.dropLast()))
            try receiver.learn(secret)
            try await test(fixture, shop, receiver)
            let events = try receiver.events
            #expect(events.allSatisfy { $0.verdicts.contains("accepted") }, "\(events)")
        }
    }

    private func cancelled(_ shop: APIClient, _ username: String) async throws -> String {
        let asked = try await shop.curl("POST", "/login", ["username": .string(username)])
        let challenge = try #require(asked["challenge"]?.string, "\(asked)")
        #expect(try await shop.curl("DELETE", "/challenge/\(challenge)").status == 204)
        return challenge
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func receiverAcceptsEveryEvent(_ kind: StoreKind) async throws {
        try await run(kind, ["--guesses", "1"]) { fixture, shop, receiver in
            let (token, code) = try await shop.register("ada")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let bound = try await receiver.event("device.bound")
            #expect(bound.data["token"]?.string == token && bound.data["device"]?.string == phone.device)
            #expect(bound.data["name"] == "Bob's phone" && bound.data["platform"] == "ios")
            let listed = try await shop.curl("GET", "/user/ada")["devices"]?.array?.first?.object
            #expect(bound.data["jwk"]?.object != nil && bound.data["jwk"] == listed?["jwk"])
            #expect(bound.data["thumbprint"] == listed?["thumbprint"])

            /// Opens a login and answers it on the phone. Returns the webhook, after a comparison with the answer
            /// of /auth.
            func decided(_ word: String, _ path: String) async throws -> TestWebhookServer.Event {
                let asked = try await shop.curl("POST", "/login", ["username": "ada"])
                let number = word == "approve" ? asked["number"]?.string : nil
                let (challenge, answer) = try await phone.sign(word, in: fixture, number: number)
                let said = try await phone.client.curl(
                    "POST", path, ["challenge": .string(challenge), "answer": .string(answer)])
                #expect(said.status == 200, "\(said)")
                let result = try await receiver.event(challenge)
                #expect(result.id == challenge && result.type == "login.decided")
                var shown = try #require(
                    try await shop.curl("POST", "/auth", ["challenge": .string(challenge)]).json?.object)
                shown.set("token", .string(token))
                #expect(result.data.names.sorted() == shown.names.sorted())
                for name in shown.names { #expect(result.data[name] == shown[name], "\(name)") }
                return result
            }
            let success = try await decided("approve", "/success")
            #expect(success.data["login"] == "success" && success.data["receipt"]?.string != nil)
            let fraud = try await decided("fraud", "/failure")
            let frozen = try await receiver.event("user.frozen")
            #expect(frozen.data["token"]?.string == token && frozen.data["challenge"]?.string == fraud.id)
            #expect(frozen.data["device"]?.string == phone.device && frozen.place > fraud.place)

            #expect(try await shop.curl("DELETE", "/user/ada/devices/\(phone.device)").status == 204)
            let unbound = try await receiver.event("device.unbound")
            #expect(unbound.data == bound.data)

            let other = try await shop.register("bob").token
            let secret: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
            #expect(try await shop.curl("POST", "/user/bob/hotp", secret).status == 201)
            let login = try await CodeLogin(shop, "bob")
            #expect(try await login.handIn("000000")["reason"] == "locked")
            let locked = try await receiver.event("codes.locked")
            #expect(locked.data["token"]?.string == other && locked.data["reason"] == "locked")
            // The two arrive in any order, and both name the challenge. The id distinguishes them.
            let challenge = try #require(locked.data["challenge"]?.string)
            let end = try await receiver.event("\"id\": \"\(challenge)\"")
            #expect(end.type == "login.decided" && end.data["reason"] == "locked")

            // Each was accepted at its first attempt.
            try await fixture.relay.logged("event=webhook.delivered", number: 7)
            let events = try receiver.events
            #expect(Set(events.map(\.id)).count == 7 && events.count == 7)
            #expect(events.allSatisfy { $0.verdicts == ["accepted"] && $0.timestamp?.hasSuffix("Z") == true })
            #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE kind = 'webhook'") == 0)
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func bothSecretsAreValidForADay(_ kind: StoreKind) async throws {
        try await run(kind) { fixture, shop, receiver in
            _ = try await shop.register("ada")
            func result() async throws -> [String] {
                try await receiver.event(try await cancelled(shop, "ada")).verdicts
            }
            func rotate(_ more: String...) async throws {
                let directory = try TemporaryDirectory()
                try await fixture.relay.tool(
                    ["website", "webhook", "shop", "rotate-secret", "--out", directory.path] + more)
                let secret = try TextFile.read(directory("shop.secret.new"))
                fixture.record(String(secret.dropLast()))
                try receiver.learn(secret)
            }
            #expect(try await result() == ["accepted"])
            try await rotate()
            #expect(try await result() == ["accepted", "accepted"])
            try await rotate("--at-once")
            let refused = "No matching signature found"
            #expect(try await result() == [refused, refused, "accepted"])
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func endpointDisabledBy410IsEnabledAgain(_ kind: StoreKind)
        async throws
    {
        try await run(kind) { fixture, shop, receiver in
            _ = try await shop.register("ada")
            try receiver.answer(410)
            let first = try await cancelled(shop, "ada")
            _ = try await receiver.event(first)
            try await fixture.relay.logged("event=webhook.disabled")
            func state() async throws -> String {
                let shown = try await fixture.relay.tool("website", "show", "shop", "--json")
                let state = try JSONReader.read(Array(shown.utf8)).object?["webhook_state"]?.object
                return
                    "\(state?["state"]?.string ?? "") \(state?["reason"]?.string ?? "") \(state?["waiting"]?.integer ?? -1)"
            }
            #expect(try await state() == "disabled unsubscribed 1")
            // Nothing is sent there by itself, only the operator's test.
            let second = try await cancelled(shop, "ada")
            #expect(try await state() == "disabled unsubscribed 2")
            try receiver.answer(204)
            try await fixture.relay.tool("website", "webhook", "shop", "test")
            #expect(try await receiver.event("twoefay.test").data == ["website": "shop"])
            #expect(try await state() == "disabled unsubscribed 2")
            #expect(try receiver.events.count == 2)

            try await fixture.relay.tool("website", "webhook", "shop", "enable")
            #expect(try await receiver.event(first, number: 2).id == first)
            #expect(try await receiver.event(second).id == second)
            try await fixture.relay.logged("event=webhook.delivered", number: 2)
            #expect(try await state() == "working  0")
        }
    }
}
