import Bytes
import Crypto
import Domain
import FakePushServices
import HTTP
import JSON
import TestSupport
import Testing
import WebPush
import World

/// An Android phone with UnifiedPush, whose distributor has a server such as ntfy: the endpoint is a topic with a query,
/// and the request is a plain one of RFC 8030.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct UnifiedPushTests {
    @Test func androidPhoneIsReachedThroughItsDistributorAndNotThroughFCM() async throws {
        let (distributor, fcm) = (try await TestPushService.start(), try await TestFCM.start())
        let files = try TemporaryDirectory()
        try TextFile.write(distributor.certificates.websites.certificatePEM(), to: files("push-ca.pem"))
        let fixture = try await Fixture.start { settings in
            try fcm.set(in: &settings)
            try settings.set("push.web.key", to: "vapid.key")
            try settings.set("push.web.contact", to: "mailto:op@example.com")
            try settings.set("push.web.ca", to: files("push-ca.pem"))
            try settings.set("push.web.allow", to: "\"127.0.0.0/8, ::1\"")
        }
        // A server such as ntfy answers 200 with JSON, and 507 while it is full.
        let json = Fields.Field("content-type", "application/json")
        distributor.script("/upFullTopic", .respond(507, [Fields.Field("retry-after", "1")]), .respond(200, [json]))
        distributor.script("/upGoneTopic", .respond(404))

        let (token, code) = try await fixture.register("anna")
        let subscriber = try TestSubscriber(distributor.origin() + "/upFullTopic?up=1")
        let key = try TestPhone(pushToken: subscriber.subscription.token)
        var body = try fixture.verifyBody(key, token: token, code: code)
        body["platform"] = "android"
        let phone = try fixture.phone(key, try await fixture.anyone.send("POST", "/verify", body))
        let user = try await fixture.shop.send("GET", "/user/anna")
        #expect(user.json["factors"] == [["kind": "push", "state": "active"]])

        let login = try await fixture.login(token, ["service": "the till"])
        let pushes = await distributor.received(2)
        #expect(distributor.faults == [])
        #expect(pushes.map(\.path) == ["/upFullTopic", "/upFullTopic"])
        let push = try #require(pushes.last)
        #expect(push.urgency == "high" && push.topic == login.challenge && (1...300).contains(push.ttl))
        let opened = try #require(subscriber.open(push))
        #expect(try JSONReader.read(opened).object?["challenge"]?.string == login.challenge)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        try await fixture.finish(login, by: phone)

        // The person has chosen another distributor, and removes it later.
        let again = try TestSubscriber(distributor.origin() + "/upGoneTopic?up=1")
        let moved = try key.movedTo(
            again.subscription.token, device: try #require(DeviceID(phone.device)), origin: fixture.relay.origin,
            website: Fixture.website, at: SystemTime().now())
        #expect(try await phone.client.send("POST", "/device", ["dev_token": .string(moved)]).status == 200)
        let gone = try await fixture.login(token)
        try await fixture.relay.logged("event=push.refused challenge=\(gone.challenge)")
        #expect(try await fixture.login(token).factor == "pull")
        #expect(fcm.service.requestCount == fcm.service.issuedTokens, "only the access token was asked for")
    }
}
