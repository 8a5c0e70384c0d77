import Bytes
import FakePushServices
import JSON
import TestSupport
import Testing
import World

/// Push bombing: a person who has the password requests logins until the user might approve one by mistake. The
/// phone rings five times and then no more, and its owner can still log in.
@Suite(.timeLimit(.minutes(15))) struct PushBombingTests {
    @Test(arguments: KillTests.stores) func pushBombingIsLimitedToFivePushes(_ store: StoreKind) async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(store, apple: apple)
        // A website with the default policies.
        try await fixture.relay.tool(
            "website", "edit", Fixture.website, "--answers", "default", "--login-limit", "default", "--push-limit",
            "default")
        let (token, code) = try await fixture.register("ada")
        let key = try TestPhone(pushToken: Fixture.pushToken())
        let phone = try await fixture.verify(key, token: token, code: code)

        var asked: [Login] = []
        for number in 0..<50 {
            let reply = try await fixture.shop.send("POST", "/login", ["token": .string(token)])
            guard number < 20 else {
                // As long as none of them leaves the window of five minutes.
                #expect(reply.status == 429 && reply["code"] == "limited", "\(number): \(reply)")
                #expect((1...300).contains(reply.retryAfter ?? 0), "\(number): \(reply.fields)")
                continue
            }
            let login = try Login(reply)
            asked.append(login)
            #expect(login.factor == (number < 5 ? "push" : "pull"), "\(number)")
            // Each push arrives before the next login supersedes its challenge.
            if number < 5 { #expect(try await apple.service.next().challenge == login.challenge) }
            // The user logs in in the middle of it, and with the last accepted login.
            if number == 12 || number == 19 { try await logIn(login, phone, key, fixture) }
        }
        #expect(asked.count == 20)
        // The next push of all is for another user.
        let (other, others) = try await fixture.enrol("bob", pushToken: Fixture.pushToken("b0b"))
        let login = try await fixture.login(other)
        let push = try await apple.service.next()
        #expect(push.deviceToken == others.pushToken && push.challenge == login.challenge)
        #expect(apple.service.acceptedCount == 6)
    }

    /// Polls for the login on the phone, and checks, signs and reports it.
    private func logIn(_ login: Login, _ phone: Phone, _ key: TestPhone, _ fixture: Fixture) async throws {
        let list = try await phone.client.send("POST", "/pending", [:]).json["pending"]?.array ?? []
        let pending = try #require(list.count == 1 ? list[0].object : nil, "\(list)")
        #expect(pending["challenge"]?.string == login.challenge)
        let shown = TestPhone.Shown(
            challenge: login.challenge, nonce: try #require(pending["nonce"]?.string),
            context: try #require(pending["context"]?.string.flatMap { Base64URL.decode($0) }))
        let signed = try key.decision(
            "approve", about: shown, device: phone.device, origin: fixture.relay.origin,
            number: login.number, at: SystemTime().now())
        let said = try await phone.client.send(
            "POST", "/success", ["challenge": .string(login.challenge), "answer": .string(signed)])
        #expect(said.status == 200 && said["login"] == "success", "\(said)")
        let result = try await fixture.auth(login.challenge)
        #expect(result["login"] == "success" && result["proof"] == "signed" && result["receipt"] == signed, "\(result)")
        #expect(result["factor"] == "pull" && result["device"] == phone.device, "\(result)")
    }
}
