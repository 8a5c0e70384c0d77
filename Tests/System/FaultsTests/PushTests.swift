import Bytes
import FakePushServices
import JSON
import TestSupport
import Testing
import World

/// Pushes end to end: from /login over TLS and HTTP/2 to a push service that checks every request as Apple does.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct PushTests {
    @Test func loginSendsOnePushWithoutSecrets() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, phone) = try await fixture.enrol("anna.secret")
        let before = SystemTime().now().seconds
        let login = try await fixture.login(
            token,
            ["service": "the till", "ip": "198.51.100.7", "number": "47", "action": "pay", "user_agent": "Browser/9"])
        #expect(login.factor == "push")
        let push = try await apple.service.next()
        #expect(push.deviceToken == phone.pushToken)
        #expect(push.topic == "com.example.twoefay")
        #expect(push.pushType == "alert")
        #expect(push.priority == 10)
        #expect(push.challenge == login.challenge)
        #expect(push.category == "TWOEFAY_LOGIN")
        #expect(push.providerToken != nil)
        let expires = try #require(push.expiration)
        #expect((before + 299...SystemTime().now().seconds + 301).contains(expires))
        // Without the challenge, whose digits may be anything.
        var open = push.payload
        open["challenge"] = nil
        let payload = JSONWriter.text(.object(open))
        #expect(payload.contains("the till") && payload.contains("198.51.100.7"))
        for secret in ["anna.secret", token, "47", "pay", "Browser"] {
            #expect(!payload.contains(secret), "\(payload)")
        }

        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        let result = try await fixture.auth(login.challenge)
        #expect(result.steps == ["sent"] && result["login"] == "wait", "\(result)")
        try await fixture.finish(login, by: phone)
        #expect(try await fixture.auth(login.challenge).steps == ["answered"])
        // The outbox rounds would have sent a second push before this one.
        _ = try await fixture.login(token)
        #expect(try await apple.service.next().challenge != login.challenge)
        #expect(apple.service.acceptedCount == 2)
    }

    /// Two connections on each loop, before the first login.
    @Test func apnsConnectionsOpenAtStart() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple) { try $0.set("loops", to: "2") }
        try await fixture.relay.logged("event=apns.connected", number: 4)
        #expect(await apple.service.connections.count == 4)
        #expect(apple.service.acceptedCount == 0)
        withExtendedLifetime(fixture) {}
    }

    @Test func unregisteredDeviceTokenIsDropped() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, phone) = try await fixture.enrol("anna", pushToken: Fixture.pushToken("dead"))
        apple.service.script("dead", .refuse(.unregistered), repeatsLast: true)
        let login = try await fixture.login(token)
        try await fixture.relay.logged("event=push.refused challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["refused"])
        // The phone can still poll.
        let next = try await fixture.login(token)
        #expect(next.factor == "pull")
        try await fixture.finish(next, by: phone)
        #expect(try await apple.service.nextRequest().push?.challenge == login.challenge)
        #expect(apple.service.acceptedCount == 0)
        #expect(try Ledger.read(fixture.relay) { try $0.texts("SELECT push_token FROM device") } == [""])
    }

    @Test func pushIsSentWhenTheServiceIsBack() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, phone) = try await fixture.enrol("anna")
        await apple.service.stop()
        let login = try await fixture.login(token)
        try await fixture.relay.logged("event=push.postponed challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["queued"])
        let ready = try await fixture.anyone.send("GET", "/ready")
        #expect(ready.status == 503)
        #expect(ready.json["dependencies"]?.object?["push"]?.string == "missing", "\(ready)")
        #expect(ready.json["dependencies"]?.object?["store"]?.string == "ok", "\(ready)")
        try await apple.service.start()
        let push = try await apple.service.next()
        #expect(push.challenge == login.challenge)
        #expect(try #require(push.expiration) > SystemTime().now().seconds)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        #expect(try await fixture.anyone.send("GET", "/ready").status == 200)
        try await fixture.finish(login, by: phone)
    }

    /// The push that was in flight is sent again under the same id.
    @Test func silentServiceGetsThePushOnceMore() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, phone) = try await fixture.enrol("anna", pushToken: Fixture.pushToken("dead"))
        apple.service.script("dead", .silence)
        let login = try await fixture.login(token)
        let first = try #require(try await apple.service.nextRequest().push)
        try await apple.service.goAway()
        let push = try await apple.service.next()
        #expect(push.id == first.id && push.challenge == login.challenge)
        try await fixture.finish(login, by: phone)
    }

    /// Enrols a user with two phones; the push service has a script for the first.
    private func twoPhones(_ fixture: Fixture) async throws -> (token: String, living: Phone) {
        let (token, _) = try await fixture.enrol("anna", pushToken: Fixture.pushToken("dead"))
        // No approval is needed for the second phone.
        try await fixture.relay.tool("website", "edit", Fixture.website, "--further-factors", "website")
        let code = try #require(try await fixture.shop.send("POST", "/user/anna/activation")["code"])
        let living = try await fixture.verify(
            try TestPhone(pushToken: Fixture.pushToken("a11e")), token: token, code: code)
        return (token, living)
    }

    @Test func livePhoneIsPushedBesideADeadOne() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, living) = try await twoPhones(fixture)
        apple.service.script("dead", .refuse(.unregistered), repeatsLast: true)
        let login = try await fixture.login(token)
        #expect(try await apple.service.next().deviceToken == living.pushToken)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        try await fixture.relay.logged("event=push.refused challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        try await fixture.finish(login, by: living)
        #expect(apple.service.acceptedCount == 1)
    }

    /// The push for one phone hangs.
    @Test func hangingPushDelaysNeitherOtherPushesNorTheLogin() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, living) = try await twoPhones(fixture)
        apple.service.script("dead", .silence, repeatsLast: true)
        for _ in 0..<2 {
            let login = try await fixture.login(token)
            var reached: [String: RecordedRequest.Outcome] = [:]
            while reached[living.pushToken] == nil || reached.count < 2 {
                let request = try await apple.service.nextRequest()
                guard let push = request.push, push.challenge == login.challenge else { continue }
                reached[push.deviceToken] = request.outcome
            }
            #expect(reached.values.filter { $0 == .accepted }.count == 1)
            try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
            #expect(try await fixture.auth(login.challenge).steps == ["sent"])
            try await fixture.finish(login, by: living)
            // These are all reports about the login's pushes up to then: the other push hung, and nothing waited
            // for it.
            let lines = fixture.relay.log.split(separator: "\n")
            let first = try #require(
                lines.first {
                    $0.contains("event=push.") && !$0.contains("event=push.queued") && $0.contains(login.challenge)
                }, "\(lines.suffix(9))")
            #expect(first.contains("event=push.accepted"), "\(first)")
        }
    }
}
