import LinuxPhone
import Testing
import TwoefayPhone

/// The PIN with a real relay, and what depends on it.
struct PINConversationTests {
    private let relay: RealRelay

    init() throws { relay = try RealRelay() }

    private func approval(_ pin: String) -> Answer {
        var answer = Answer(.approve(number: nil))
        answer.pin = pin
        return answer
    }

    @Test func personSetsLocksAndResetsThePIN() async throws {
        let shop = try relay.website("--number", "0", "--pin", "required")
        let app = App()
        let phone = try await app.enrol(try shop.register())
        let login = try shop.logIn()
        var challenge = try #require(try await phone.pending().challenges.first)
        #expect(challenge.demands?.pin == .set)
        await expectRefusal(403, "pin_required") { try await phone.answer(approval("2580"), to: challenge) }
        #expect(try await phone.pinStatus().state == .none)

        for digits in ["123", "1234567890123", "12a4", "１２３４"] {
            await #expect(throws: PhoneError.self) { try await phone.changePIN(to: digits, .set) }
        }
        let puk = try #require(try await phone.changePIN(to: "258014", .set))
        #expect(PINSecret.isPUK(puk))
        let again = try await app.restarted(phone)
        #expect(try await again.pinStatus().state == .set)
        // The phone stores the secret, and nothing that depends on the PIN.
        let enrolment = await phone.enrolment
        let secret = try #require(enrolment.pinSecret)
        let key = try secret.key(of: "258014", for: .pin, OpenSSLCryptography()).publicKey
        let stored = String(decoding: enrolment.stored, as: UTF8.self)
        for text in ["258014", puk, Base64URL.encode(key.x)] { #expect(!stored.contains(text)) }

        challenge = try #require(try await phone.pending().challenges.first)
        #expect(challenge.demands?.pin == .sign)
        for (pin, left) in [("0000", 2), ("1111", 1)] as [(String, Int64)] {
            let wrong = await expectRefusal(403, "pin_wrong") { try await phone.answer(approval(pin), to: challenge) }
            #expect(wrong?.triesLeft == left)
        }
        await expectRefusal(403, "pin_locked") { try await phone.answer(approval("2222"), to: challenge) }
        await expectRefusal(403, "pin_locked") { try await phone.answer(approval("258014"), to: challenge) }
        #expect(try await phone.pinStatus().state == .locked)

        let other = String(puk.reversed()) == puk ? "000000000000" : String(puk.reversed())
        await expectRefusal(403, "puk_wrong") { try await phone.changePIN(to: "1357", .reset(puk: other)) }
        let next = try #require(try await phone.changePIN(to: "1357", .reset(puk: puk)))
        #expect(next != puk)
        #expect(try await phone.changePIN(to: "8642", .change(old: "1357")) == nil)
        #expect(try await phone.pinStatus().version == 3)
        #expect(try await phone.answer(approval("8642"), to: challenge) == .success)
        #expect(try shop.result(login)[0] == "success")
    }

    @Test func helpDeskUnlocksThePhone() async throws {
        let shop = try relay.website("--number", "0", "--pin", "required")
        let phone = try await App().enrol(try shop.register())
        _ = try await phone.changePIN(to: "2580", .set)
        let device = try #require(await phone.enrolment.device)
        let issued = try relay.operate("device", "unlock-code", device, "--json")
        let code = try #require(JSONReader.object(Array(issued.utf8))?["code"]?.string, "\(issued)")
        await expectRefusal(403, "unlock_wrong") {
            try await phone.changePIN(to: "1357", .unlock(code: code == "00000000" ? "00000001" : "00000000"))
        }
        let typed = "\(code.prefix(4)) - \(code.suffix(4))"
        #expect(try await phone.changePIN(to: "1357", .unlock(code: typed))?.utf8.count == 12)
        await expectRefusal(403, "unlock_void") { try await phone.changePIN(to: "2468", .unlock(code: code)) }
        let login = try shop.logIn()
        let challenge = try #require(try await phone.pending().challenges.first)
        #expect(try await phone.answer(approval("1357"), to: challenge) == .success)
        #expect(try shop.result(login)[0] == "success")
    }

    /// A change takes effect once, however often its answer is lost.
    @Test func lostChangeCountsOnce() async throws {
        let shop = try relay.website("--pin", "optional")
        let clock = SetClock()
        let lossy = LossyTransport(CurlTransport(clock: clock), losing: ["POST /device/pin", "POST /device/pin"])
        let phone = try await App(clock: clock, transport: lossy).enrol(try shop.register())
        _ = try await phone.changePIN(to: "2580", .set)
        #expect(clock.slept == [2000, 4000])
        #expect(try await phone.pinStatus().version == 1)
    }

    /// Reports cost nothing, so that even a slow machine sends more than ten in a minute.
    @Test func tooManyRequestsAreLimited() async throws {
        let phone = try await App().enrol(try relay.website().register())
        var limited: Refusal?
        for _ in 0..<100 where limited == nil {
            do throws(PhoneError) {
                try await phone.report(PhoneStatus())
            } catch {
                guard case .refused(let refusal) = error else { throw error }
                limited = refusal
            }
        }
        #expect(limited?.status == 429 && limited?.code == "limited" && (limited?.retryAfter ?? 0) > 0)
        #expect(PhoneError.refused(try #require(limited)).mayPass)
    }

    /// A login without a connection of the phone.
    @Test func codesOfThePhoneCount() async throws {
        let shop = try relay.website()
        let phone = try await App().enrol(try shop.register())
        await expectRefusal(403, "forbidden") { try await phone.fetchCodes() }
        try relay.operate("website", "edit", shop.name, "--phone-codes", "again", "--pin", "optional")
        #expect(await phone.code() == nil)
        try await phone.fetchCodes()
        let (code, left) = try #require(await phone.code())
        #expect(code.utf8.count == 6 && (1...30).contains(left))
        let checked = try shop.call("POST", "/verify-otp", ["username": "alice", "otp": .string(code)])
        #expect(checked["valid"]?.bool == true, "\(checked)")
        // A phone with a PIN needs it for the secret, too.
        _ = try await phone.changePIN(to: "2580", .set)
        await expectRefusal(403, "pin_required") { try await phone.fetchCodes() }
        await expectRefusal(403, "pin_wrong") { try await phone.fetchCodes(pin: "0000") }
        try await phone.fetchCodes(pin: "2580")
        let bare = App()
        var options = EnrolmentOptions()
        options.hasCodes = false
        let without = try await bare.enrol(try shop.register("bob"), options)
        await #expect(throws: PhoneError.self) { try await without.fetchCodes() }
    }
}
