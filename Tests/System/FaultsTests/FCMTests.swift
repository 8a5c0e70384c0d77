import Bytes
import Crypto
import Domain
import FakePushServices
import Glibc
import JSON
import TestSupport
import Testing
import World

/// Android phones end to end: from enrolment and /login to a service that checks every request as FCM does.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct FCMTests {
    private struct Android {
        let token: String
        let key: TestPhone
        let phone: Phone
    }

    private func start(
        _ fcm: TestFCM, apple: TestAPNs? = nil, change: (inout String) throws -> Void = { _ in }
    ) async throws -> Fixture {
        try await Fixture.start(apple: apple) { settings in
            try fcm.set(in: &settings)
            try change(&settings)
        }
    }

    private func enrol(
        _ username: String, pushToken: String = TestFCM.token(), in fixture: Fixture
    ) async throws -> Android {
        let (token, code) = try await fixture.register(username)
        let key = try TestPhone(pushToken: pushToken)
        var body = try fixture.verifyBody(key, token: token, code: code)
        body["platform"] = "android"
        let reply = try await fixture.anyone.send("POST", "/verify", body)
        return Android(token: token, key: key, phone: try fixture.phone(key, reply))
    }

    @Test func androidPhoneIsPushedAndAnswers() async throws {
        let fcm = try await TestFCM.start()
        let fixture = try await start(fcm)
        let anna = try await enrol("anna.secret", in: fixture)
        let user = try await fixture.shop.send("GET", "/user/anna.secret")
        #expect(user.json["factors"] == [["kind": "push", "state": "active"]])
        let before = SystemTime().now().seconds
        let login = try await fixture.login(
            anna.token, ["service": "the till", "ip": "198.51.100.7", "number": "47", "action": "pay"])
        #expect(login.factor == "push")
        let push = try await fcm.service.next()
        #expect(push.deviceToken == anna.key.pushToken && push.priority == 10)
        let expires = try #require(push.expiration)
        #expect((before + 298...SystemTime().now().seconds + 300).contains(expires))
        var open = push.payload
        #expect(open["challenge"]?.string == login.challenge)
        open["challenge"] = nil
        #expect(open["loc-key"] == "TWOEFAY_LOGIN_SERVICE_IP")
        #expect(open["loc-args"] == #"["the till","198.51.100.7"]"#)
        let payload = JSONWriter.text(.object(open))
        for secret in ["anna.secret", anna.token, "47", "pay"] { #expect(!payload.contains(secret), "\(payload)") }
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        try await fixture.finish(login, by: anna.phone)
        // The outbox rounds would have sent a second push before this one.
        _ = try await fixture.login(anna.token)
        #expect(try await fcm.service.next().challenge != login.challenge)
        #expect(fcm.service.issuedTokens == 1)
        for secret in [anna.key.pushToken, "fake.", "PRIVATE KEY"] {
            #expect(!fixture.relay.log.contains(secret), "\(secret)")
        }
    }

    /// Both services at once: each phone is pushed by its own.
    @Test func phonesOfBothPlatformsArePushed() async throws {
        let (fcm, apple) = (try await TestFCM.start(), try await TestAPNs.start())
        let fixture = try await start(fcm, apple: apple)
        let android = try await enrol("anna", in: fixture)
        let (token, phone) = try await fixture.enrol("bob")
        let (first, second) = (try await fixture.login(android.token), try await fixture.login(token))
        #expect(try await fcm.service.next().challenge == first.challenge)
        #expect(try await apple.service.next().deviceToken == phone.pushToken)
        try await fixture.relay.logged("event=push.accepted challenge=\(second.challenge)")
        #expect(fcm.service.acceptedCount == 1 && apple.service.acceptedCount == 1)
    }

    @Test func removedAppIsForgottenUntilItsTokenIsReplaced() async throws {
        let fcm = try await TestFCM.start()
        let fixture = try await start(fcm)
        fcm.service.script("dead", .refuse(.fcmUnregistered), repeatsLast: true)
        let anna = try await enrol("anna", pushToken: TestFCM.token("dead"), in: fixture)
        let login = try await fixture.login(anna.token)
        try await fixture.relay.logged("event=push.refused challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["refused"])
        #expect(try Ledger.read(fixture.relay) { try $0.texts("SELECT push_token FROM device") } == [""])
        let next = try await fixture.login(anna.token)
        #expect(next.factor == "pull")
        try await fixture.finish(next, by: anna.phone)

        // The app was installed again, or got another token.
        let again = TestFCM.token("live")
        let moved = try anna.key.movedTo(
            again, device: try #require(DeviceID(anna.phone.device)), origin: fixture.relay.origin,
            website: Fixture.website, at: SystemTime().now())
        #expect(try await anna.phone.client.send("POST", "/device", ["dev_token": .string(moved)]).status == 200)
        let last = try await fixture.login(anna.token)
        #expect(last.factor == "push")
        #expect(try await fcm.service.next().deviceToken == again)
        try await fixture.finish(last, by: anna.phone)
    }

    /// A subscription of UnifiedPush is not sent to FCM, and an unknown token is not sent at all.
    @Test func otherTokenOfAnAndroidPhoneIsPolled() async throws {
        let fcm = try await TestFCM.start()
        let fixture = try await start(fcm)
        let anna = try await enrol("anna", pushToken: "another-vendor", in: fixture)
        let login = try await fixture.login(anna.token)
        #expect(login.factor == "pull")
        try await fixture.finish(login, by: anna.phone)
        #expect(fcm.service.acceptedCount == 0)
    }

    @Test(arguments: [RefusalReason.senderIDMismatch, .thirdPartyAuthError, .invalidArgument])
    func faultOfTheSettingsIsReportedAndKeepsTheToken(reason: RefusalReason) async throws {
        let fcm = try await TestFCM.start()
        let fixture = try await start(fcm)
        fcm.service.script("odd", .refuse(reason), repeatsLast: true)
        let anna = try await enrol("anna", pushToken: TestFCM.token("odd"), in: fixture)
        let login = try await fixture.login(anna.token)
        let line = try await fixture.relay.logged("event=push.undeliverable challenge=\(login.challenge)")
        #expect(line.contains("level=error") && line.contains(reason.rawValue), "\(line)")
        #expect(try await fixture.auth(login.challenge).steps == ["undeliverable"])
        let tokens = try Ledger.read(fixture.relay) { try $0.texts("SELECT push_token FROM device") }
        #expect(tokens == [anna.key.pushToken])
    }

    @Test func busyServiceIsRetriedWithinTheChallengesTime() async throws {
        let fcm = try await TestFCM.start()
        let fixture = try await start(fcm)
        fcm.service.script("busy", .refuse(.unavailable, retryAfter: .seconds(1)), .accept)
        let anna = try await enrol("anna", pushToken: TestFCM.token("busy"), in: fixture)
        let login = try await fixture.login(anna.token)
        try await fixture.relay.logged("event=push.postponed challenge=\(login.challenge)")
        #expect(try await fcm.service.next().challenge == login.challenge)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        try await fixture.finish(login, by: anna.phone)
    }

    @Test func refusedAccountIsSeenInReady() async throws {
        let fcm = try await TestFCM.start()
        fcm.service.setTokenAnswers([.refuse])
        let fixture = try await start(fcm)
        try await fixture.relay.logged("event=fcm.credential.refused")
        let ready = try await fixture.anyone.send("GET", "/ready")
        #expect(ready.status == 503)
        #expect(ready.json["dependencies"]?.object?["fcm"]?.string == "missing", "\(ready)")
        let anna = try await enrol("anna", in: fixture)
        let login = try await fixture.login(anna.token)
        try await fixture.relay.logged("event=push.undeliverable challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["undeliverable"])
    }

    /// Another key of the account, without a restart.
    @Test func reloadTakesAnotherKeyOfTheAccount() async throws {
        let fcm = try await TestFCM.start()
        let fixture = try await start(fcm)
        let anna = try await enrol("anna", in: fixture)
        let right = try TextFile.bytes(fcm.account)
        let foreign = try FakeProject(team: fcm.project.team, keyPEM: CertificateKey.generateRSA())
        try TextFile.write(foreign.account(origin: fcm.origin).reveal(), to: fcm.account)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=fcm.credential.refused")
        try TextFile.write(right, to: fcm.account)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded", number: 2)
        let login = try await fixture.login(anna.token)
        #expect(try await fcm.service.next().challenge == login.challenge)
    }
}
