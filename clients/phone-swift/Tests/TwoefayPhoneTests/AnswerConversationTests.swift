import LinuxPhone
import Synchronization
import Testing
import TwoefayPhone

/// Logins with a real relay.
struct AnswerConversationTests {
    private let relay: RealRelay

    init() throws { relay = try RealRelay() }

    private func only(_ phone: Phone) async throws -> Challenge {
        let pending = try await phone.pending()
        try #require(pending.challenges.count == 1 && pending.refused.isEmpty, "\(pending)")
        return pending.challenges[0]
    }

    @Test func phoneAnswersChallengesOneByOne() async throws {
        let shop = try relay.website()
        let phone = try await App().enrol(try shop.register())
        #expect(try await phone.pending().isEmpty)

        let pay: JSONObject = [
            "action": "pay", "details": .array([.object(["label": "amount", "value": "12.00 EUR"])]),
        ]
        let approved = try shop.logIn("alice", pay)
        let challenge = try await only(phone)
        let context = challenge.context
        #expect(challenge.id == approved.challenge && context.displayName == "The Shop")
        #expect(context.username == "alice" && context.service == "members" && context.action == "pay")
        #expect(context.details.map(\.value) == ["12.00 EUR"] && context.ip == "192.0.2.7")
        #expect(challenge.timeLeft > 0)
        let yes = Answer(.approve(number: approved.number), verification: .passcode)
        #expect(try await phone.answer(yes, to: challenge) == .success)
        #expect(try shop.result(approved) == ["success", nil, "signed"])

        let denied = try shop.logIn()
        #expect(try await phone.answer(Answer(.deny), to: try await only(phone)) == .failure)
        #expect(try shop.result(denied) == ["failure", "denied", "signed"])

        let mistaken = try shop.logIn()
        let other = mistaken.number == "12" ? "13" : "12"
        #expect(try await phone.answer(Answer(.approve(number: other)), to: try await only(phone)) == .failure)
        #expect(try shop.result(mistaken) == ["failure", "wrong_number", "signed"])

        let strange = try shop.logIn()
        #expect(try await phone.answer(Answer(.fraud), to: try await only(phone)) == .failure)
        #expect(try shop.result(strange) == ["failure", "fraud", "signed"])
        // A frozen user gets no challenges.
        _ = try shop.call("POST", "/login", ["username": "alice"])
        #expect(try await phone.pending().isEmpty)
    }

    /// A wrong number would end the challenge, so the phone sends nothing that cannot be the
    /// number.
    @Test func numberOfAnotherLengthIsNotSent() async throws {
        let shop = try relay.website()
        let phone = try await App().enrol(try shop.register())
        let login = try shop.logIn()
        let challenge = try await only(phone)
        for number in [nil, "", "1", "123", "1a", " 12", "+1"] as [String?] {
            await #expect(throws: PhoneError.self) {
                try await phone.answer(Answer(.approve(number: number)), to: challenge)
            }
        }
        #expect(try await phone.answer(Answer(.approve(number: login.number)), to: challenge) == .success)
    }

    /// After a wrong number the phone waits, but it may deny. The pause is of five seconds, which a
    /// slow machine may miss: a right number then begins anew.
    @Test func wrongNumberIsPausedFor() async throws {
        let shop = try relay.website()
        let phone = try await App().enrol(try shop.register())
        for _ in 0..<20 {
            let mistaken = try shop.logIn()
            let other = mistaken.number == "12" ? "13" : "12"
            #expect(try await phone.answer(Answer(.approve(number: other)), to: try await only(phone)) == .failure)
            let next = try shop.logIn()
            let challenge = try await only(phone)
            do throws(PhoneError) {
                _ = try await phone.answer(Answer(.approve(number: next.number)), to: challenge)
            } catch {
                guard case .refused(let refusal) = error else { throw error }
                #expect(refusal.status == 429 && refusal.code == "limited" && error.mayPass)
                #expect((1...5).contains(refusal.retryAfter ?? 0))
                #expect(try await phone.answer(Answer(.deny), to: challenge) == .failure)
                return
            }
        }
        Issue.record("this machine is too slow")
    }

    /// The relay holds the request of an app that shows the list, until the list changes.
    @Test func watchSeesEachChallengeAndItsEnd() async throws {
        let shop = try relay.website("--number", "0")
        let phone = try await App().enrol(try shop.register())
        let seen = Mutex<[Int]>([])
        let open = Mutex<Website.Login?>(nil)
        let watching = Task {
            try await phone.watch { pending in
                let round = seen.withLock { seen in
                    seen.append(pending.challenges.count)
                    return seen.count
                }
                do {
                    switch round {
                    case 1:
                        let challenge = try #require(pending.challenges.first)
                        #expect(try await phone.answer(Answer(.approve(number: nil)), to: challenge) == .success)
                    case 2:
                        // The answered one has left the list. Another one comes, and is cancelled.
                        open.withLock { $0 = try? shop.logIn() }
                    case 3:
                        let login = try #require(open.withLock { $0 })
                        #expect(try shop.call("DELETE", "/challenge/\(login.challenge)").status == 204)
                    default: return false
                    }
                } catch {
                    Issue.record("\(error)")
                    return false
                }
                return true
            }
        }
        let first = try shop.logIn()
        #expect(try shop.result(first) == ["success", nil, "signed"])
        try await watching.value
        #expect(seen.withLock { $0 } == [1, 0, 1, 0])
    }

    /// The same bytes are sent again, and the second answer has the result of the first.
    @Test func lostAnswerIsSentAgain() async throws {
        let shop = try relay.website()
        let clock = SetClock()
        let lossy = LossyTransport(CurlTransport(clock: clock), losing: ["POST /success"])
        let phone = try await App(clock: clock, transport: lossy).enrol(try shop.register())
        let login = try shop.logIn()
        let challenge = try await only(phone)
        #expect(try await phone.answer(Answer(.approve(number: login.number)), to: challenge) == .success)
        let bodies = lossy.sent.filter { $0.path == "/success" }.compactMap { $0.body?.text }
        #expect(bodies.count == 2 && Set(bodies).count == 1 && clock.slept == [2000])
        let late = await expectRefusal(409, "already_decided") {
            try await phone.answer(Answer(.deny), to: challenge)
        }
        #expect(late?.body["login"]?.string == "success")
    }

    @Test func demandsAreMet() async throws {
        let shop = try relay.website(
            "--number", "0", "--min-uv", "passcode", "--max-uv-age", "60", "--min-os-ios", "17.4", "--screen-lock",
            "on",
            "--phone-place", "flag")
        let phone = try await App().enrol(try shop.register())
        let login = try shop.logIn()
        let challenge = try await only(phone)
        let demands = try #require(challenge.demands)
        #expect(demands.longestVerificationAge == 60 && demands.osVersion == "17.4" && demands.needsScreenLock)
        #expect(challenge.asksPlace)
        var answer = Answer(.approve(number: nil))
        await expectRefusal(403, "forbidden") { try await phone.answer(answer, to: challenge) }
        (answer.verification, answer.verificationAge) = (.biometric, 3)
        await expectRefusal(403, "posture_unmet") { try await phone.answer(answer, to: challenge) }
        var posture = Posture()
        (posture.osVersion, posture.appVersion, posture.hasScreenLock) = ("18.1", "42", true)
        answer.posture = posture
        answer.place = CoarsePlace(latitude: 52.5244, longitude: 13.4105, accurateTo: 900)
        #expect(try await phone.answer(answer, to: challenge) == .success)
        #expect(try shop.result(login) == ["success", nil, "signed"])
    }

    /// The phone sends no value that the website has not asked for.
    @Test func unaskedValuesStayOnThePhone() async throws {
        let shop = try relay.website("--number", "0")
        let lossy = LossyTransport(CurlTransport(), losing: [])
        let phone = try await App(transport: lossy).enrol(try shop.register())
        _ = try shop.logIn()
        var answer = Answer(.approve(number: nil), verification: .biometric)
        answer.verificationAge = 3
        answer.place = CoarsePlace(latitude: 1, longitude: 2, accurateTo: 3)
        var posture = Posture()
        posture.osVersion = "18.1"
        answer.posture = posture
        answer.pin = "2580"
        #expect(try await phone.answer(answer, to: try await only(phone)) == .success)
        let body = try #require(lossy.sent.last { $0.path == "/success" }?.body)
        let claims = try #require(body["answer"]?.string.flatMap { JWS($0) }).claims
        let names = ["v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat"]
        #expect(claims.members.map(\.name).filter { $0 != "request" } == names && body.members.count == 2)
    }

    @Test func placeIsCoarse() {
        func text(_ latitude: Double, _ longitude: Double, _ accuracy: Double = 5) -> String? {
            CoarsePlace(latitude: latitude, longitude: longitude, accurateTo: accuracy)?.text
        }
        #expect(text(52.5244, 13.4105) == "52.5,13.4" && text(-0.04, -179.96) == "0.0,-180.0")
        #expect(text(90.1, 0) == nil && text(.nan, 0) == nil && text(1, 2, 50_001) == nil && text(1, 2, -1) == nil)
    }

    /// A suspended phone is told nothing, and keeps its key.
    @Test func suspendedPhoneGoesOnWhenItIsResumed() async throws {
        let shop = try relay.website("--number", "0")
        let app = App()
        let phone = try await app.enrol(try shop.register())
        let device = try #require(await phone.enrolment.device)
        try relay.operate("device", "suspend", device)
        for _ in 0..<2 { await expectRefusal(401, "unauthenticated") { try await phone.pending() } }
        await expectRefusal(401, "unauthenticated") { try await phone.farewell() }
        #expect(app.storage.stored.count == 1)
        try relay.operate("device", "resume", device)
        // The relay may still refuse a phone for two seconds.
        while (try? await phone.pending()) == nil { await SystemClock().sleep(milliseconds: 100) }
        let login = try shop.logIn()
        #expect(try await phone.answer(Answer(.approve(number: nil)), to: try await only(phone)) == .success)
        #expect(try shop.result(login) == ["success", nil, "signed"])
    }

    @Test func refusalsAreInTheLanguageOfThePerson() async throws {
        let shop = try relay.website("--number", "0", "--min-uv", "passcode")
        var app = App()
        app.parts.languages = "de-AT, de;q=0.8"
        let phone = try await app.enrol(try shop.register())
        _ = try shop.logIn()
        let challenge = try await only(phone)
        let refusal = await expectRefusal(403, "forbidden") {
            try await phone.answer(Answer(.approve(number: nil)), to: challenge)
        }
        #expect(refusal?.detail.contains("Die Website verlangt") == true, "\(refusal?.detail ?? "")")
    }
}
