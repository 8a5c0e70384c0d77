import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

/// The counts of a phone's answers and of a user's codes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PhoneCountTests {
    private func counts(_ fixture: TwoWebsitesFixture, of phone: RelayRig.BoundPhone) async throws -> DeviceCounts {
        let devices = try await fixture.rig.on { relay in
            try await relay.devices(of: try await relay.user(named: "ada", of: fixture.shop))
        }
        return try #require(devices.first { $0.id == phone.credential.id }).counts
    }

    @Test(arguments: StoreKind.all) func eachAnswerCountsOnceForItsPhone(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let approved = try await fixture.ask()
        #expect(try await rig.decide(.approve, approved.challenge, number: "47", by: fixture.first) == .success)
        // A repetition, and the other phone's answer to the same challenge, count nothing.
        for phone in [fixture.first, fixture.second] {
            await #expect(throws: Refusal.alreadyDecided(result: "success")) {
                try await rig.decide(.approve, approved.challenge, number: "47", by: phone)
            }
        }
        #expect(
            try await counts(fixture, of: fixture.first) == DeviceCounts(successes: 1, failures: 0, wrongNumbers: 0))

        let denied = try await fixture.ask()
        #expect(try await rig.decide(.deny, denied.challenge, by: fixture.first) == .failure)
        let wrong = try await fixture.ask()
        #expect(try await rig.decide(.approve, wrong.challenge, number: "11", by: fixture.first) == .failure)
        let refused = try await fixture.ask()
        // Too soon after a wrong number: the challenge is still open.
        await #expect(throws: Refusal.limited(retryAfter: .seconds(5))) {
            try await rig.decide(.approve, refused.challenge, number: "47", by: fixture.first)
        }
        #expect(
            try await counts(fixture, of: fixture.first) == DeviceCounts(successes: 1, failures: 2, wrongNumbers: 1))
        #expect(
            try await counts(fixture, of: fixture.second) == DeviceCounts(successes: 0, failures: 0, wrongNumbers: 0))

        rig.time.advance(by: .seconds(60))
        let right = try await fixture.ask()
        #expect(try await rig.decide(.approve, right.challenge, number: "47", by: fixture.first) == .success)
        let fraud = try await fixture.ask()
        #expect(try await rig.decide(.fraud, fraud.challenge, by: fixture.first) == .failure)
        #expect(
            try await counts(fixture, of: fixture.first) == DeviceCounts(successes: 2, failures: 3, wrongNumbers: 0))
    }

    /// A report about an ended login changes the user, and not the result.
    @Test(arguments: StoreKind.all) func lateFraudReportIsNotCounted(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
        await #expect(throws: Refusal.alreadyDecided(result: "success")) {
            try await fixture.rig.decide(.fraud, asked.challenge, by: fixture.second)
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 1)
        #expect(
            try await counts(fixture, of: fixture.first) == DeviceCounts(successes: 1, failures: 0, wrongNumbers: 0))
        #expect(
            try await counts(fixture, of: fixture.second) == DeviceCounts(successes: 0, failures: 0, wrongNumbers: 0))
    }

    @Test(arguments: StoreKind.all) func refusedPlaceCountsAsFailure(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let phone = fixture.first.credential
        let closed = try await fixture.rig.on { [rig = fixture.rig] relay in
            let row = try #require(try await rig.store.challenge(asked.challenge, of: phone.user))
            let life = try row.life.after(.refusePlace, at: rig.time.now())
            return try await rig.store.close(
                ChallengeEnd(
                    challenge: row.id, life: life, factor: .push, proof: .signed, device: phone,
                    event: "challenge.answered", at: rig.time.now()), as: relay.operations.new())
        }
        #expect(closed != nil)
        #expect(
            try await counts(fixture, of: fixture.first) == DeviceCounts(successes: 0, failures: 1, wrongNumbers: 0))
    }

    @Test(arguments: StoreKind.all) func approvalOfAChangeIsCounted(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        guard case .approvalRequired(let challenge, let number) = await refusal({ try await ada.addTOTP() }) else {
            throw RigFailure("not asked")
        }
        try await ada.decide(challenge, .approve, number, by: phone)
        #expect(
            try await ada.devices().map(\.counts) == [DeviceCounts(successes: 1, failures: 0, wrongNumbers: 0)])
    }

    /// The website's answer for its user is not one of a phone.
    @Test(arguments: StoreKind.all) func answerOfTheWebsiteIsNotCounted(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["answers": "website"])
        let asked = try await fixture.ask(number: nil)
        let result = try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.answer(asked.challenge, of: nil, .approve, by: shop, as: relay.operations.new())
        }
        #expect(result == .success)
        #expect(try fixture.rig.count("SELECT sum(login_successes) + sum(login_failures) FROM device") == 0)
    }

    /// Both phones answer the same challenge, each at another relay.
    @Test func answersAtTwoRelaysCountOnce() async throws {
        let fixture = try await TwoWebsitesFixture(.mariadb)
        let (rig, other) = (fixture.rig, try await RelayRig(beside: fixture.rig))
        for round in 1...5 {
            let asked = try await fixture.ask()
            let answers = [(rig, fixture.first), (other, fixture.second)]
            let successes = await withTaskGroup(of: Bool.self) { group in
                for (rig, phone) in answers {
                    group.addTask {
                        (try? await rig.decide(.approve, asked.challenge, number: "47", by: phone)) == .success
                    }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(successes == 1)
            #expect(try rig.count("SELECT sum(login_successes) FROM device") == Int64(round))
        }
        #expect(try rig.count("SELECT sum(login_failures) FROM device") == 0)
    }

    /// If many answers arrive at once, one ends the challenge, and one is counted.
    @Test(arguments: StoreKind.all) func racingAnswersCountOnce(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let (rig, phones) = (fixture.rig, [fixture.first, fixture.second])
        let successes = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<10 {
                group.addTask {
                    let phone = phones[index % 2]
                    return (try? await rig.decide(.approve, asked.challenge, number: "47", by: phone)) == .success
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(successes == 1)
        #expect(try rig.count("SELECT sum(login_successes) FROM device") == 1)
        #expect(try rig.count("SELECT sum(login_failures) FROM device") == 0)
    }

    // MARK: Codes

    @Test(arguments: StoreKind.all, [Factor.totp, .hotp]) func rightCodeIsTimed(
        kind: StoreKind, factor: Factor
    ) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(factor)
        func lastCode() async throws -> Timestamp? {
            let factors = try await fixture.rig.on { relay in
                try await relay.codeFactors(of: try await relay.user(named: "ada", of: fixture.shop))
            }
            return try #require(factors.first { $0.kind == factor }).lastCodeAt
        }
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, try await fixture.login()).result == .wait)
        #expect(try await lastCode() == nil)
        fixture.rig.time.advance(by: .seconds(30))
        let code = factor == .totp ? fixture.totp() : CodeLoginFixture.codes[0]
        let first = fixture.rig.time.now()
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .success)
        #expect(try await lastCode() == first)
        fixture.rig.time.advance(by: .seconds(60))
        // The same code is wrong now.
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .wait)
        #expect(try await lastCode() == first)
        fixture.rig.time.advance(by: .seconds(60))
        let next = factor == .totp ? fixture.totp() : CodeLoginFixture.codes[1]
        #expect(try await fixture.handIn(next, try await fixture.login()).result == .success)
        #expect(try await lastCode() == first + .seconds(120))
    }

    /// The first code of an app is a right code, too.
    @Test(arguments: StoreKind.all) func confirmingCodeIsTimed(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let setup = try await ada.addTOTP()
        #expect(try await ada.factors().map(\.lastCodeAt) == [nil])
        #expect(try await ada.confirm(try ada.code(setup.secret)))
        #expect(try await ada.factors().map(\.lastCodeAt) == [rig.time.now()])
    }

    @Test(arguments: StoreKind.all) func recoveryCodeIsTimed(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", ["recovery-check": "off"]), rig)
        let codes = try await ada.addRecoveryCodes()
        try rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        rig.time.advance(by: .seconds(60))
        #expect(try await ada.unlock(by: codes[0]))
        #expect(try await ada.factors().first { $0.kind == .recovery }?.lastCodeAt == rig.time.now())
    }
}
