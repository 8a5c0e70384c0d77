import Bytes
import FakePushServices
import JSON
import TestSupport
import Testing
import World

/// Phones without a device token, beside a push service that checks every request as Apple does.
@Suite(.timeLimit(.minutes(15))) struct PullTests {
    /// The form in which a phone says that it has no device token.
    enum Silence: Sendable, CaseIterable {
        case leftOut, empty
    }

    @Test(arguments: Silence.allCases) func phoneWithoutPushTokenIsNeverPushed(_ silence: Silence) async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, code) = try await fixture.register("anna")
        let key = try TestPhone(pushToken: "")
        var body = try fixture.verifyBody(key, token: token, code: code)
        if silence == .leftOut {
            body["dev_token"] = nil
            body["proof"] = .string(
                try key.proof(
                    token: token, code: code, origin: fixture.relay.origin, website: Fixture.website,
                    at: SystemTime().now()
                ) { $0["dev_token"] = nil })
        }
        let phone = try fixture.phone(key, try await fixture.anyone.send("POST", "/verify", body))
        let user = try await fixture.shop.send("GET", "/user/anna")
        #expect(user.json["factors"] == [["kind": "pull", "state": "active"]])
        #expect(user.json["devices"]?.array?.first?.object?["state"] == "active")

        // More often than the number of consecutive bad tokens after which the sender stops dropping tokens.
        for _ in 0..<6 {
            let login = try await fixture.login(token)
            #expect(login.factor == "pull")
            let result = try await fixture.auth(login.challenge)
            #expect(result["login"] == "wait" && result.steps == ["queued"], "\(result)")
            let pending = try await phone.client.send("POST", "/pending", [:])
            #expect(
                pending.json["pending"]?.array?.map { $0.object?["challenge"]?.string } == [login.challenge])
            // The mail says that a phone was bound. It may wait for its settlement: anna has no address.
            let kinds = "SELECT kind FROM outbox WHERE kind <> 'mail'"
            let left = try Ledger.read(fixture.relay) { try $0.texts(kinds) }
            #expect(left == ["expiry"], "nothing is there to be pushed, now or later")
            try await fixture.finish(login, by: phone)
        }
        expectNoTrouble(fixture)
        #expect(apple.service.acceptedCount == 0)
    }

    /// The same for other platforms, whose push services this relay does not have.
    @Test func onlyTheIPhoneIsPushed() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, iPhone) = try await fixture.enrol("anna")
        // No approval is needed for the further phones.
        try await fixture.relay.tool("website", "edit", Fixture.website, "--further-factors", "website")
        var others: [Phone] = []
        for (platform, pushToken) in [
            ("other", ""), ("ios", ""), ("android", "fcm:APA91bHun4"), ("web", "eyJlbmRwb2ludCI6Imh0dHBzOi8v"),
        ] {
            let code = try #require(try await fixture.shop.send("POST", "/user/anna/activation")["code"])
            let key = try TestPhone(pushToken: pushToken)
            var body = try fixture.verifyBody(key, token: token, code: code)
            body["platform"] = .string(platform)
            others.append(try fixture.phone(key, try await fixture.anyone.send("POST", "/verify", body)))
        }
        for phone in others {
            let login = try await fixture.login(token)
            #expect(login.factor == "push")
            let push = try await apple.service.next()
            #expect(push.deviceToken == iPhone.pushToken && push.challenge == login.challenge)
            try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
            try await fixture.finish(login, by: phone)
        }
        expectNoTrouble(fixture)
        #expect(apple.service.acceptedCount == others.count)
    }

    private func expectNoTrouble(_ fixture: Fixture, location: SourceLocation = #_sourceLocation) {
        // Lines about restrictions that the kernel or a sanitizer does not allow do not concern a login.
        let lines = fixture.relay.log.split(separator: "\n").filter { !$0.contains("event=hardening.") }
        for word in [
            "level=error", "level=warning", "event=push.refused", "event=push.undeliverable", "event=apns.refused",
        ] {
            let isThere = lines.contains { $0.contains(word) }
            #expect(!isThere, "\(word)", sourceLocation: location)
        }
    }
}
