import Bytes
import Crypto
import Domain
import EventLoop
import Glibc
import HTTP
import JSON
import Log
import Synchronization
import TestSupport
import Testing
import WebPush
import World

/// Browsers as phones, end to end: from /login to a push service that checks every request by the RFCs, and to the
/// decryption with the subscriber's keys.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct WebPushTests {
    /// Starts a relay with Web Push, which may also send to this machine unless that is forbidden.
    private func start(
        _ service: TestPushService, allow: String? = "127.0.0.0/8, ::1"
    ) async throws -> (fixture: Fixture, files: TemporaryDirectory) {
        let files = try TemporaryDirectory()
        try TextFile.write(service.certificates.websites.certificatePEM(), to: files("push-ca.pem"))
        let fixture = try await Fixture.start { settings in
            try settings.set("push.web.key", to: "vapid.key")
            try settings.set("push.web.contact", to: "mailto:op@example.com")
            try settings.set("push.web.ca", to: files("push-ca.pem"))
            if let allow { try settings.set("push.web.allow", to: "\"\(allow)\"") }
        }
        return (fixture, files)
    }

    private struct Browser {
        let subscriber: TestSubscriber
        let token: String
        let key: TestPhone
        let phone: Phone
    }

    private func enrol(_ username: String, _ endpoint: String, in fixture: Fixture) async throws -> Browser {
        let (token, code) = try await fixture.register(username)
        let subscriber = try TestSubscriber(endpoint)
        let key = try TestPhone(pushToken: subscriber.subscription.token)
        let reply = try await bring(key, token, code, fixture)
        return Browser(subscriber: subscriber, token: token, key: key, phone: try fixture.phone(key, reply))
    }

    private func bring(_ key: TestPhone, _ token: String, _ code: String, _ fixture: Fixture) async throws -> Reply {
        var body = try fixture.verifyBody(key, token: token, code: code)
        body["platform"] = "web"
        return try await fixture.anyone.send("POST", "/verify", body)
    }

    @Test func browserIsPushedAndItsReceiptReachesTheWebsite() async throws {
        let service = try await TestPushService.start()
        let (fixture, _) = try await start(service)
        try await fixture.relay.tool("website", "edit", Fixture.website, "--answers", "signed")
        let reply = try await fixture.anyone.send("GET", "/push")
        let serverKey = try #require(reply.json["web"]?.object?["application_server_key"]?.string)
        #expect(Base64URL.decode(serverKey)?.count == 65)

        let browser = try await enrol("anna.secret", service.origin() + "/anna", in: fixture)
        let user = try await fixture.shop.send("GET", "/user/anna.secret")
        #expect(user.json["factors"] == [["kind": "push", "state": "active"]])
        let login = try await fixture.login(
            browser.token, ["service": "the till", "ip": "198.51.100.7", "number": "47", "request": "4711"])
        #expect(login.factor == "push")

        let push = try #require(await service.received(1).first)
        #expect(service.faults == [])
        #expect(push.path == "/anna" && push.topic == login.challenge && push.urgency == "high")
        #expect((1...300).contains(push.ttl))
        #expect(push.claims["aud"]?.string == service.origin())
        #expect(push.claims["sub"]?.string == "mailto:op@example.com")
        // Signed with the key with which the browser has subscribed.
        #expect(push.authorization.hasSuffix("k=\(serverKey)"))
        let opened = try #require(browser.subscriber.open(push))
        var words = try #require(try JSONReader.read(opened).object)
        #expect(words["challenge"]?.string == login.challenge)
        words["challenge"] = nil
        let text = JSONWriter.text(.object(words))
        #expect(text.contains("the till") && text.contains("198.51.100.7") && text.contains("TWOEFAY_LOGIN"))
        for secret in ["anna.secret", browser.token, "47"] { #expect(!text.contains(secret), "\(text)") }

        let pending = try await browser.phone.client.send("POST", "/pending", [:])
        let asked = try #require(pending.json["pending"]?.array?.first?.object)
        let shown = TestPhone.Shown(
            challenge: try #require(asked["challenge"]?.string), nonce: try #require(asked["nonce"]?.string),
            context: try #require(asked["context"]?.string.flatMap { Base64URL.decode($0) }))
        #expect(shown.challenge == login.challenge)
        let answer = try browser.key.decision(
            "approve", about: shown, device: browser.phone.device, origin: fixture.relay.origin, number: "47",
            at: SystemTime().now())
        let said = try await browser.phone.client.send(
            "POST", "/success", ["challenge": .string(login.challenge), "answer": .string(answer)])
        #expect(said["login"] == "success", "\(said)")
        let end = try await fixture.auth(login.challenge)
        #expect(end["login"] == "success" && end["receipt"] == answer && end["proof"] == "signed", "\(end)")
        #expect(!fixture.relay.log.contains(browser.subscriber.subscription.token))
    }

    @Test func expiredSubscriptionIsDropped() async throws {
        let service = try await TestPushService.start()
        let (fixture, _) = try await start(service)
        service.script("/gone", .respond(410))
        let browser = try await enrol("anna", service.origin() + "/gone", in: fixture)
        let login = try await fixture.login(browser.token)
        try await fixture.relay.logged("event=push.refused challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["refused"])
        #expect(try Ledger.read(fixture.relay) { try $0.texts("SELECT push_token FROM device") } == [""])
        let next = try await fixture.login(browser.token)
        #expect(next.factor == "pull")
        try await fixture.finish(next, by: browser.phone)
        #expect(service.count == 1)

        // The browser has subscribed again.
        let again = try TestSubscriber(service.origin() + "/again")
        let device = try #require(DeviceID(browser.phone.device))
        let moved = try browser.key.movedTo(
            again.subscription.token, device: device, origin: fixture.relay.origin, website: Fixture.website,
            at: SystemTime().now())
        #expect(try await browser.phone.client.send("POST", "/device", ["dev_token": .string(moved)]).status == 200)
        let last = try await fixture.login(browser.token)
        #expect(last.factor == "push")
        let push = try #require(await service.received(2).last)
        #expect(push.path == "/again" && again.open(push) != nil)
        try await fixture.finish(last, by: browser.phone)
    }

    @Test func busyPushServiceIsRetried() async throws {
        let service = try await TestPushService.start()
        let (fixture, _) = try await start(service)
        service.script("/busy", .respond(429, [Fields.Field("retry-after", "1")]), .take)
        let browser = try await enrol("anna", service.origin() + "/busy", in: fixture)
        let login = try await fixture.login(browser.token)
        try await fixture.relay.logged("event=push.postponed challenge=\(login.challenge)")
        let pushes = await service.received(2)
        #expect(pushes.map(\.topic) == [login.challenge, login.challenge])
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        try await fixture.finish(login, by: browser.phone)
    }

    @Test func subscriptionForAnotherKeyAffectsNoOther() async throws {
        let service = try await TestPushService.start()
        let (fixture, _) = try await start(service)
        service.script("/strict", .respond(403))
        let anna = try await enrol("anna", service.origin() + "/strict", in: fixture)
        let bob = try await enrol("bob", service.origin() + "/bob", in: fixture)
        let refused = try await fixture.login(anna.token)
        let line = try await fixture.relay.logged("event=push.undeliverable challenge=\(refused.challenge)")
        // A warning, because users could otherwise cause alarms.
        #expect(line.contains("level=warning"), "\(line)")
        #expect(try await fixture.auth(refused.challenge).steps == ["undeliverable"])
        let login = try await fixture.login(bob.token)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        try await fixture.finish(login, by: bob.phone)
        try await fixture.finish(refused, by: anna.phone)
    }

    /// A server that counts connections and closes them.
    private final class CountingServer: Sendable {
        /// The record of connections. It does not own the loop, so the last callback cannot end the loop from
        /// within.
        private final class Accepted: Sendable {
            let ports = Mutex<[UInt16]>([])
            let sink = ObservedSink()
        }

        private let group: LoopGroup
        private let accepted = Accepted()
        private let listener: LoopBound<Listener>
        let port: UInt16

        init() async throws {
            let group = try LoopGroup.start(count: 1, time: SystemTime())
            let loop = group.loops[0]
            let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
            listener = try await loop.perform {
                Result { LoopBound(try Listener(loop: loop, address: address), on: loop) }
            }.get()
            self.group = group
            port = await loop.perform { [listener] in listener.value.address.port }
            try await loop.perform { [self] () -> Result<Void, any Error> in
                Result {
                    try listener.value.start(
                        accepted: { [accepted] fd, remote in
                            close(fd)
                            accepted.ports.withLock { $0.append(remote.port) }
                            Log(sink: accepted.sink).info("test.accepted")
                        }, exhausted: { _ in })
                }
            }.get()
        }

        deinit { group.stopAndJoin() }

        /// Counts the earlier connections. It connects itself, and connections are accepted in order.
        func count() async throws -> Int {
            let address = try #require(SocketAddress(host: "127.0.0.1", port: port))
            let fd = try Socket.connect(address)
            defer { close(fd) }
            let own = try #require(Socket.localAddress(fd)).port
            var count = 0
            while true {
                await accepted.sink.lines(of: "test.accepted", count: count + 1)
                if accepted.ports.withLock({ $0.dropFirst(count).first ?? own }) == own { return count }
                count += 1
            }
        }
    }

    @Test func endpointResolvingToAPrivateAddressIsNotContacted() async throws {
        let service = try await TestPushService.start()
        let server = try await CountingServer()
        let (fixture, _) = try await start(service, allow: nil)
        let browser = try await enrol("anna", "https://localhost:\(server.port)/anna", in: fixture)
        let login = try await fixture.login(browser.token)
        try await fixture.relay.logged("event=push.undeliverable challenge=\(login.challenge)")
        let reply = try await fixture.auth(login.challenge)
        #expect(reply.steps == ["undeliverable"] && reply["login"] == "wait", "\(reply)")
        #expect(try await server.count() == 0)
        // A phone that polls finds the challenge.
        let pending = try await browser.phone.client.send("POST", "/pending", [:])
        #expect(pending.json["pending"]?.array?.map { $0.object?["challenge"]?.string } == [login.challenge])
        try await fixture.finish(login, by: browser.phone)
    }

    @Test func endpointWithAPrivateAddressIsRefused() async throws {
        let service = try await TestPushService.start()
        let (fixture, _) = try await start(service, allow: "10.9.0.0/16")
        let (token, code) = try await fixture.register("anna")
        // A phone without a valid code learns nothing about internal addresses.
        let (_, another) = try await fixture.register("bob")
        let curious = try TestPhone(pushToken: try TestSubscriber("https://127.0.0.1/x").subscription.token)
        #expect(try await bring(curious, token, another, fixture).status == 401)
        for host in ["127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254"] {
            let key = try TestPhone(pushToken: try TestSubscriber("https://\(host)/x").subscription.token)
            let refused = try await bring(key, token, code, fixture)
            #expect(refused.status == 400 && refused["code"] == "invalid", "\(refused)")
            let fault = refused.json["errors"]?.array?.first?.object
            #expect(fault?["parameter"]?.string == "dev_token", "\(refused)")
        }
        let rubbish = try await bring(try TestPhone(pushToken: "rubbish"), token, code, fixture)
        #expect(rubbish.status == 400 && rubbish["code"] == "invalid", "\(rubbish)")
        // The code is still valid, and an allowed range does not count as internal.
        let key = try TestPhone(pushToken: try TestSubscriber("https://10.9.0.1/x").subscription.token)
        let phone = try fixture.phone(key, try await bring(key, token, code, fixture))
        let moved = try key.movedTo(
            try TestSubscriber("https://192.168.0.1/x").subscription.token,
            device: try #require(DeviceID(phone.device)), origin: fixture.relay.origin, website: Fixture.website,
            at: SystemTime().now())
        let refused = try await phone.client.send("POST", "/device", ["dev_token": .string(moved)])
        #expect(refused.status == 400 && refused["code"] == "invalid", "\(refused)")
        let left = try Ledger.read(fixture.relay) { try $0.texts("SELECT push_token FROM device") }
        #expect(left == [key.pushToken])
    }

    @Test func silentPushServiceDelaysNoOther() async throws {
        let service = try await TestPushService.start()
        let (fixture, _) = try await start(service)
        service.script("/silent", .silence)
        let anna = try await enrol("anna", service.origin() + "/silent", in: fixture)
        let bob = try await enrol("bob", service.origin("127.0.0.1") + "/bob", in: fixture)
        let waiting = try await fixture.login(anna.token)
        _ = await service.received(1)
        let login = try await fixture.login(bob.token)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        try await fixture.finish(login, by: bob.phone)
        // Its own push may still be in flight. A phone that polls need not wait for it.
        try await fixture.finish(waiting, by: anna.phone)
    }

    @Test func webPushIsOffWithoutAKey() async throws {
        let fixture = try await Fixture.start()
        let reply = try await fixture.anyone.send("GET", "/push")
        #expect(reply.status == 200 && reply.json == [:], "\(reply)")
    }
}
