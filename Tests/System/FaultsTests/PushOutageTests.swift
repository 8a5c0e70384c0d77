import FakePushServices
import JSON
import TestSupport
import Testing

/// Logins at a real relay whose push service goes away and comes back.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct PushOutageTests {
    @Test func loginDoesNotWaitForAServiceThatCannotBeReached() async throws {
        let apple = try await TestAPNs.start()
        let mails = try await HoldingMailServer.start()
        let fixture = try await Fixture.start(apple: apple) { settings in
            try settings.set("loops", to: "1")
            try settings.set("mail.url", to: "smtp://127.0.0.1:\(mails.port)")
            try settings.set("mail.from", to: "login@example.org")
        }
        let reply = try await fixture.shop.send(
            "POST", "/register", ["username": "anna", "email": "anna@example.org"])
        let (token, code) = try Fixture.registered(reply)
        let phone = try await fixture.verify(TestPhone(pushToken: Fixture.pushToken()), token: token, code: code)
        #expect(try await fixture.login(token).factor == "push")
        try await fixture.relay.logged("event=apns.connected", number: 2)
        await apple.service.stop()
        // The two connections end. At most two attempts run at the same time, and count once.
        try await fixture.relay.logged("event=apns.disconnected", number: 8)
        let login = try await fixture.login(token)
        #expect(login.factor == "mail")
        try await fixture.relay.logged("event=mail.accepted challenge=\(login.challenge)")
        let waiting = try await fixture.auth(login.challenge)
        #expect(waiting.steps == ["queued", "sent"])
        let push = waiting.json["steps"]?.array?.first?.object
        #expect(push?["factor"]?.string == "push" && push?["reason"]?.string == "push_down")
        try await fixture.relay.logged("event=push.service.down")
        try await apple.service.start()
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent", "sent"])
        try await fixture.finish(login, by: phone)
        try await fixture.relay.logged("event=push.service.up")
    }
}
