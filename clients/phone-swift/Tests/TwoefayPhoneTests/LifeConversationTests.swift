import LinuxPhone
import Testing
import TwoefayPhone

/// The work of a phone beside logins, with a real relay.
struct LifeConversationTests {
    private let relay: RealRelay

    init() throws { relay = try RealRelay() }

    @Test func noticesOfWebsiteAndOperatorAreRead() async throws {
        let shop = try relay.website()
        let phone = try await App().enrol(try shop.register())
        #expect(try await phone.pending().isEmpty)
        #expect(await phone.messageCount == 0)
        let left = try shop.call(
            "POST", "/user/alice/messages", ["title": "Prices", "text": "New prices.\nThe Shop"])
        let first = try #require(left["message"]?.string, "\(left)")
        try relay.operate(
            "notice", "leave", "alice", "No logins on Sunday.", "--title", "Maintenance", "--website", shop.name)
        _ = try await phone.pending()
        #expect(await phone.messageCount == 2)
        let entries = try await phone.notices()
        #expect(Set(entries.map(\.title)) == ["Prices", "Maintenance"])
        let notice = try await phone.notice(first)
        #expect(notice.author == .website && notice.title == "Prices" && notice.text == "New prices.\nThe Shop")
        let second = try #require(entries.first { $0.id != first })
        #expect(try await phone.notice(second.id).author == .operator)
        #expect(try await phone.notices().isEmpty)
        #expect(try await phone.notices(inArchive: true).count == 2)
        #expect(await phone.messageCount == 0)
        try relay.operate("notice", "withdraw", "alice", first, "--website", shop.name)
        await expectRefusal(404, "not_found") { try await phone.notice(first) }
    }

    @Test func personStopsARecovery() async throws {
        let shop = try relay.website(
            "--recovery-url", "https://shop.example.com/recover", "--further-factors", "website")
        let activation = try shop.register("alice", ["email": "alice@example.com"])
        let seed: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
        #expect(try shop.call("POST", "/user/alice/hotp", seed).status == 201)
        let phone = try await App().enrol(activation)
        #expect(try await phone.recoveries().isEmpty)
        try relay.operate("user", "recover", "alice", "--website", shop.name, "--factor", "hotp")
        let recovery = try #require(try await phone.recoveries().first)
        #expect(recovery.factor == "hotp" && recovery.state == .sent && recovery.readyAt == nil)
        try await phone.stopRecovery(recovery.id)
        #expect(try await phone.recoveries().isEmpty)
        try await phone.stopRecovery(recovery.id)
    }

    @Test func phoneReportsItsState() async throws {
        let shop = try relay.website()
        let clock = SetClock()
        let lossy = LossyTransport(CurlTransport(clock: clock), losing: [])
        let phone = try await App(clock: clock, transport: lossy).enrol(try shop.register())
        var status = PhoneStatus()
        (status.os, status.osVersion, status.appVersion, status.model) = ("iOS", "18.1", "42", "iPhone 17")
        (status.battery, status.hasScreenLock, status.isRooted) = (81, true, false)
        try await phone.report(status)
        // Another report in the same second is sent once more, one second later.
        status.battery = 80
        try await phone.report(status)
        let phones = try shop.phones()
        let report = try #require(phones.first?["report"]?.object, "\(phones)")
        #expect(report["os"]?.string == "iOS" && report["battery"]?.integer == 80 && report["rooted"]?.bool == false)
        #expect(report["patch_level"] == nil || report["patch_level"]?.isNull == true)
        let bodies = Set(lossy.sent.filter { $0.path == "/device/status" }.map { $0.body?.text })
        #expect((2...3).contains(bodies.count))
    }

    @Test func phoneChangesItsNameAndToken() async throws {
        let shop = try relay.website()
        let app = App()
        var options = EnrolmentOptions()
        options.pushToken = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
        let phone = try await app.enrol(try shop.register(), options)
        try await phone.rename("Bob's")
        #expect(try shop.phones().first?["name"]?.string == "Bob's")
        await expectRefusal(400, "invalid") { try await phone.rename("a\u{202e}b") }
        let token = String(repeating: "a9", count: 32)
        try await phone.use(pushToken: token)
        try await phone.use(pushToken: nil)
        let enrolment = await (try await app.restarted(phone)).enrolment
        #expect(enrolment.pushToken == nil && enrolment.name == "Bob's")
    }

    @Test func phoneLeaves() async throws {
        let shop = try relay.website()
        let app = App()
        let phone = try await app.enrol(try shop.register())
        #expect(try await phone.farewell() == nil)
        let farewell = try await phone.leave()
        #expect(farewell.by == "phone" && app.storage.stored.isEmpty)
        let device = await phone.enrolment.device
        #expect(JWS(farewell.statement)?.claims["device"]?.string == device)
    }

    @Test(arguments: ["website", "operator", "code"]) func unboundPhoneLearnsWhoDidIt(author: String) async throws {
        let shop = try relay.website()
        let app = App()
        let phone = try Phone.begin(try shop.register(), parts: app.parts)
        let code = try #require(try await phone.enrol())
        let enrolment = await phone.enrolment
        let device = try #require(enrolment.device)
        switch author {
        case "website": #expect(try shop.call("DELETE", "/user/alice/devices/\(device)").status == 204)
        case "operator": try relay.operate("device", "revoke", device, "--yes")
        default:
            try await Revocation.revoke(code, at: enrolment.relay, pins: enrolment.pins, over: CurlTransport())
        }
        do throws(PhoneError) {
            _ = try await phone.pending()
            Issue.record("answered")
        } catch {
            guard case .unbound(let farewell) = error else { throw error }
            #expect(farewell.by == author)
        }
        // The keys are there until the person has seen it.
        #expect(app.storage.stored.count == 1)
        #expect(try await phone.leave().by == author)
        #expect(app.storage.stored.isEmpty)
    }

    @Test func malformedRevocationCodeIsRefused() async throws {
        let activation = try relay.website().register()
        await expectRefusal(400, "invalid") {
            try await Revocation.revoke("x", at: activation.relay, pins: [activation.pin], over: CurlTransport())
        }
    }

    /// The user was deleted: the relay knows no such key, and signs nothing about it.
    @Test func deletedUserIsNotAFarewell() async throws {
        let shop = try relay.website()
        let app = App()
        let phone = try await app.enrol(try shop.register())
        #expect(try shop.call("DELETE", "/user/alice").status == 204)
        await expectRefusal(401, "unauthenticated") { try await phone.pending() }
        await expectRefusal(401, "unauthenticated") { try await phone.leave() }
        #expect(app.storage.stored.count == 1)
        try await phone.forget()
        #expect(app.storage.stored.isEmpty)
    }
}

/// Phones whose clock is wrong, with a real relay. Its certificate is valid for some years.
struct ClockConversationTests {
    private static let day: Int64 = 86_400_000
    private let relay: RealRelay

    init() throws { relay = try RealRelay() }

    /// The certificate is not valid yet by this clock, so not even an activation code would be
    /// sent.
    @Test func clockThatIsBehindIsCorrected() async throws {
        let shop = try relay.website()
        let app = App(clock: SetClock(offset: -1095 * Self.day))
        let phone = try await app.enrol(try shop.register())
        let offset = await phone.enrolment.clockOffset
        #expect(abs(offset - 1095 * Self.day) < 60_000)
        let login = try shop.logIn()
        let challenge = try #require(try await phone.pending().challenges.first)
        #expect(try await phone.answer(Answer(.approve(number: login.number)), to: challenge) == .success)
        let again = try await app.restarted(phone)
        #expect(await again.enrolment.clockOffset == offset)
    }

    /// The certificate is valid by this clock, but the proofs are not.
    @Test(arguments: [2, -0.2]) func proofsAreCorrected(days: Double) async throws {
        let shop = try relay.website("--phone-codes", "again")
        let wrong = Int64(days * Double(Self.day))
        let phone = try await App(clock: SetClock(offset: wrong)).enrol(try shop.register())
        try await phone.fetchCodes()
        #expect(abs(await phone.enrolment.clockOffset + wrong) < 60_000)
        let code = try #require(await phone.code()).code
        let checked = try shop.call("POST", "/verify-otp", ["username": "alice", "otp": .string(code)])
        #expect(checked["valid"]?.bool == true)
        try await phone.refreshTime()
        #expect(abs(await phone.enrolment.clockOffset + wrong) < 60_000)
    }

    /// Bodies with a time are signed again at the relay's time; here the clock is wrong by less than
    /// an hour, but by more than the relay accepts.
    @Test func signedTimesAreCorrected() async throws {
        let shop = try relay.website("--phone-codes", "again")
        for work in ["codes", "status", "goodbye"] {
            let phone = try await App(clock: SetClock(offset: 1_800_000)).enrol(try shop.register(work))
            switch work {
            case "codes": try await phone.fetchCodes()
            case "status": try await phone.report(PhoneStatus())
            default: #expect(try await phone.leave().by == "phone")
            }
            #expect(abs(await phone.enrolment.clockOffset + 1_800_000) < 60_000, "\(work)")
        }
    }

    /// The key of an expired certificate must not be enough: only the person sets the time back.
    @Test func clockThatIsAheadIsSetBackOnRequestOnly() async throws {
        let shop = try relay.website()
        let app = App(clock: SetClock(offset: 4000 * Self.day))
        let activation = try shop.register()
        let phone = try Phone.begin(activation, parts: app.parts)
        do throws(PhoneError) {
            _ = try await phone.enrol()
            Issue.record("sent")
        } catch {
            guard case .untrusted(let reason) = error else { throw error }
            #expect(reason.contains("set the clock"), "\(reason)")
        }
        #expect(await phone.enrolment.clockOffset == 0)
        let signed = try await phone.synchronise()
        #expect(abs(signed.offset + 4000 * Self.day) < 60_000 && signed.uncertainty <= 5000)
        #expect(try await phone.enrol()?.utf8.count == 20)
    }
}
