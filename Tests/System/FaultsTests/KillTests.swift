import EventLoop
import FakePushServices
import HTTP2
import JSON
import TestSupport
import Testing

/// Kills the relay with SIGKILL between any two steps of a login, and starts it with the same
/// store. The login continues, and nothing that the relay acknowledged is lost.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct KillTests {
    static let stores: [StoreKind] = [.file, .mariadb]

    @Test(arguments: stores) func killAfterRegisterLosesNothing(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        let body: JSONObject = ["username": "anna"]
        let (token, code) = try Fixture.registered(try await fixture.shop.send("POST", "/register", body, key: "r"))
        try await fixture.relay.killAndRestart()
        #expect(try await fixture.shop.send("GET", "/user/anna")["token"] == token)
        // The registration succeeded, and its secret is not shown again.
        let again = try await fixture.shop.send("POST", "/register", body, key: "r")
        #expect(again.status == 409 && again["code"] == "shown_once", "\(again)")
        let phone = try await fixture.verify(try TestPhone(pushToken: Fixture.pushToken()), token: token, code: code)
        try await fixture.finish(try await fixture.login(token), by: phone)
    }

    @Test(arguments: stores) func killAfterVerifyLosesNothing(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        let (token, code) = try await fixture.register("anna")
        let device = try TestPhone(pushToken: Fixture.pushToken())
        let body = try fixture.verifyBody(device, token: token, code: code)
        let before = try await fixture.anyone.send("POST", "/verify", body)
        try #require(before.status == 200, "\(before)")
        try await fixture.relay.killAndRestart()
        // As a phone does that never saw the answer.
        let after = try await fixture.anyone.send("POST", "/verify", body)
        #expect(after["device"] == before["device"])
        #expect(after["revocation_code"] == before["revocation_code"])
        // The device and certificate from before still work.
        try await fixture.finish(try await fixture.login(token), by: try fixture.phone(device, before))
        #expect(try Ledger.read(fixture.relay) { try $0.number("SELECT count(*) FROM device") } == 1)
    }

    @Test(arguments: stores) func killAfterLoginLosesNothing(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        let (token, phone) = try await fixture.enrol("anna")
        let before = try await fixture.login(token, key: "l")
        try await fixture.relay.killAndRestart()
        // The same challenge, number and end, and no second one.
        #expect(try await fixture.login(token, key: "l") == before)
        #expect(try await fixture.auth(before.challenge)["login"] == "wait")
        try await fixture.finish(before, by: phone)
        #expect(try Ledger.read(fixture.relay) { try $0.number("SELECT count(*) FROM challenge") } == 1)
    }

    @Test(arguments: stores) func killWhileAuthIsHeldLosesNothing(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        let (token, phone) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        let line = try await fixture.shop.line()
        async let held = line.send(
            "POST", "/auth", ["challenge": .string(login.challenge)], fields: ["prefer": "wait=60"])
        // Both requests read, and reads are answered in order: behind this answer, the other request is held.
        _ = try await fixture.auth(login.challenge)
        _ = try await line.send("GET", "/user/anna").get()
        try await fixture.relay.killAndRestart()
        guard case .failure(.ambiguous) = await held else {
            Issue.record("a held request was answered by a dead relay: \(await held)")
            return
        }
        async let again = fixture.auth(login.challenge, wait: 60)
        #expect(try await phone.approve(login).status == 200)
        #expect(try await again["login"] == "success")
        try await fixture.finish(login, by: nil)
    }

    /// The answer is committed, and neither the phone nor the website knows.
    @Test(arguments: stores) func killWhileThePhoneAnswersLosesNothing(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        let (token, phone) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        async let unread = phone.approve(login)
        _ = try await fixture.relay.logged("event=challenge.answered")
        try await fixture.relay.killAndRestart()
        _ = try? await unread
        #expect(try await fixture.auth(login.challenge)["login"] == "success")
        // The phone repeats until it knows the result; another answer changes nothing.
        let again = try await phone.approve(login)
        #expect(again.status == 409 && again["code"] == "already_decided", "\(again)")
        let deny = try await phone.client.send("POST", "/failure", ["challenge": .string(login.challenge)])
        #expect(deny.status == 409, "\(deny)")
        try await fixture.finish(login, by: nil)
    }

    @Test(arguments: stores) func killAfterThePhonesAnswerLosesNothing(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        let (token, phone) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        #expect(try await phone.approve(login)["login"] == "success")
        try await fixture.relay.killAndRestart()
        try await fixture.finish(login, by: nil)
        // And again, after the webhook.
        try await fixture.relay.killAndRestart()
        try await fixture.finish(login, by: nil)
    }

    /// The next relay sends a push that the dead relay had leased: at once if no other relay can
    /// use the store, otherwise when the dead relay's heartbeat has timed out.
    @Test(arguments: stores) func pushOfADeadRelayIsSentByAnother(_ store: StoreKind) async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(store, apple: apple)
        let pushToken = Fixture.pushToken("dead")
        let (token, phone) = try await fixture.enrol("anna", pushToken: pushToken)
        apple.service.script("dead", .silence)
        let login = try await fixture.login(token, key: "l")
        let unanswered = try #require(try await apple.service.nextRequest().push)
        try await fixture.relay.killAndRestart()
        let push = try await apple.service.next()
        #expect(push.id == unanswered.id)
        #expect(push.challenge == login.challenge)
        #expect(push.deviceToken == pushToken)
        _ = try await fixture.relay.logged("event=push.accepted")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        try await fixture.finish(login, by: phone)
        #expect(apple.service.acceptedCount == 1)
    }
}

extension Fixture {
    /// Approves the login with the phone, if there is one, and checks its result at the website and
    /// in the store.
    func finish(_ login: Login, by phone: Phone?, location: SourceLocation = #_sourceLocation) async throws {
        if let phone {
            let answer = try await phone.approve(login)
            #expect(answer["login"] == "success", "\(answer)", sourceLocation: location)
        }
        let result = try await auth(login.challenge)
        #expect(result["login"] == "success", "\(result)", sourceLocation: location)
        try Ledger.read(relay) { ledger in
            try ledger.check(location)
            let ends = try ledger.number(
                """
                SELECT count(*) FROM audit WHERE challenge_id = x'\(login.challenge)'
                AND event = 'challenge.answered' AND outcome = 'approve'
                """)
            #expect(ends == 1, sourceLocation: location)
        }
    }
}

extension RunningRelay {
    /// Kills the relay with SIGKILL, and starts it again with the same installation.
    func killAndRestart() async throws {
        await kill()
        try await restart()
    }
}
