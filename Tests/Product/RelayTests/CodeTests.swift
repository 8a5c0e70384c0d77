import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Submitted codes: which are right, how often each is accepted, and the effect of wrong ones.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CodeTests {
    @Test(arguments: StoreKind.all) func totpStepIsAcceptedOnceAndNeverAnEarlierOne(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        // The code of the previous time step.
        #expect(try await fixture.handIn(fixture.totp(-1), try await fixture.login()).result == .success)
        let used = fixture.totp(-1)
        #expect(try await fixture.handIn(used, try await fixture.login()).result == .wait)
        fixture.rig.time.advance(by: .seconds(5))
        // The clock of the device is ahead.
        let ahead = fixture.totp(1)
        #expect(try await fixture.handIn(ahead, try await fixture.login()).result == .success)
        #expect(try fixture.failures(of: .totp) == 0)
        // Codes before the last accepted one are wrong, even the code of the current time.
        #expect(try await fixture.handIn(fixture.totp(), try await fixture.login()).result == .wait)
        fixture.rig.time.advance(by: .seconds(60))
        #expect(try await fixture.handIn(fixture.totp(2), try await fixture.login()).result == .wait)
    }

    @Test(arguments: StoreKind.all) func hotpTokenMayBeTenPressesAhead(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.hotp)
        #expect(try await fixture.handIn(CodeLoginFixture.codes[9], try await fixture.login()).result == .success)
        #expect(try fixture.rig.count("SELECT counter FROM factor") == 10)
        #expect(try await fixture.handIn(CodeLoginFixture.codes[9], try await fixture.login()).result == .wait)
        let other = try await CodeLoginFixture(kind, hasPhone: false)
        try other.give(.hotp)
        let eleventh = OTP.code(secret: Secret(RelayRig.secret), counter: 10, algorithm: .sha1, digits: 6)
        #expect(try await other.handIn(eleventh, try await other.login()).result == .wait)
        #expect(try other.rig.count("SELECT counter FROM factor") == 0)
    }

    @Test(arguments: StoreKind.all) func recoveryCodeIsAcceptedOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.recovery)
        let typed = "ABCD-efgh 2345-ijkl"
        let digest = try #require(RecoveryCode.digest(typed, user: fixture.id))
        try fixture.rig.execute(
            """
            INSERT INTO recovery_code (user_id, digest, factor_id, position)
            SELECT user_id, x'\(Hex.encode(digest))', id, 1 FROM factor WHERE kind = 'recovery'
            """)
        let asked = try await fixture.login()
        let reported = try await fixture.handIn(typed, asked)
        #expect(reported.result == .success && reported.factor == .recovery && reported.assurance == .substantial)
        #expect(try await fixture.steps(asked) == "push skipped, recovery answered")
        #expect(try fixture.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 1)
        #expect(try await fixture.handIn(typed, try await fixture.login()).result == .wait)
        #expect(try fixture.failures(of: .recovery) == 1)
    }

    @Test(arguments: StoreKind.all) func sameCodeThirtyTimesAtOnceIsAcceptedOnce(kind: StoreKind) async throws {
        for factor in [Factor.totp, .mail] {
            let fixture = try await CodeLoginFixture(kind, hasPhone: false)
            try fixture.give(factor)
            let asked = try await fixture.login()
            let code = factor == .totp ? fixture.totp() : CodeLoginFixture.codes[0]
            let outcomes = await together(30, code, asked, fixture)
            #expect(outcomes.filter { (try? $0.get())?.result == .success }.count == 1)
            #expect(outcomes.filter { $0 == .failure(.alreadyDecided(result: "success")) }.count == 29)
            let accepted = "SELECT count(*) FROM audit WHERE event = 'challenge.answered' AND proof = 'code'"
            #expect(try fixture.rig.count(accepted) == 1)
            #expect(try fixture.failures(of: factor) == 0)
        }
    }

    private func together(
        _ count: Int, _ code: String, _ asked: OpenedChallenge, _ fixture: CodeLoginFixture
    ) async -> [Result<ChallengeResult, Refusal>] {
        await withTaskGroup(of: Result<ChallengeResult, Refusal>.self) { group in
            for _ in 0..<count { group.addTask { await fixture.outcome(of: code, asked) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Two hundred codes that arrive at once: one is checked and the others have to wait. After ten wrong codes,
    /// codes are locked.
    @Test(arguments: StoreKind.all) func concurrentWrongCodesAreCountedExactly(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        try fixture.give(.hotp)
        let asked = try await fixture.login(expiresIn: 600)
        for count in 1...10 {
            let outcomes = await together(count == 1 ? 200 : 20, CodeLoginFixture.wrong, asked, fixture)
            let tried = outcomes.compactMap { try? $0.get() }
            try #require(tried.count == 1)
            let held = outcomes.filter { if case .failure(.limited) = $0 { true } else { false } }
            let over = outcomes.filter {
                $0 == .failure(.codesLocked) || $0 == .failure(.alreadyDecided(result: "failure"))
            }
            #expect(held.count + over.count == outcomes.count - 1 && (count == 10 || over.isEmpty))
            #expect(try fixture.failures(of: .totp) == count && fixture.failures(of: .hotp) == count)
            guard count < 10 else { break }
            #expect(tried[0].result == .wait)
            // No code is checked before the delay is over, right or wrong, and nothing is counted.
            fixture.rig.time.advance(by: FailureDelay.pause * count - .milliseconds(1))
            #expect(
                await fixture.outcome(of: fixture.totp(), asked) == .failure(.limited(retryAfter: .milliseconds(1))))
            fixture.rig.time.advance(by: .milliseconds(1))
        }
        // No other factor could answer, so the challenge failed.
        let reported = try await fixture.reported(asked)
        #expect(reported.result == .failure && reported.reason == .locked)
        #expect(await fixture.outcome(of: fixture.totp(), asked) == .failure(.alreadyDecided(result: "failure")))
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'code.wrong'") == 10)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'codes.locked'") == 1)
        #expect(try fixture.rig.count("SELECT code_failures FROM user WHERE codes_locked_at IS NOT NULL") == 10)
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 1)
        #expect(try await fixture.reported(try await fixture.login()).reason == .locked)
        // An operator unlocks codes, and all failures are cleared.
        #expect(try await fixture.unlockByOperator())
        #expect(try fixture.failures(of: .totp) == 0)
        #expect(try await fixture.handIn(fixture.totp(), try await fixture.login()).result == .success)
    }

    @Test(arguments: StoreKind.all) func rightCodeClearsItsFactorsFailures(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        try fixture.give(.mail)
        let asked = try await fixture.login()
        _ = try await fixture.handIn(CodeLoginFixture.wrong, asked)
        // No mail was sent, so the code cannot have been for that factor.
        #expect(try fixture.failures(of: .totp) == 1 && fixture.failures(of: .mail) == 0)
        fixture.rig.time.advance(by: FailureDelay.pause)
        _ = try await fixture.begin(.mail, asked)
        // A change of factor resets nothing.
        _ = try await fixture.handIn(CodeLoginFixture.wrong, asked)
        #expect(try fixture.failures(of: .totp) == 2 && fixture.failures(of: .mail) == 1)
        fixture.rig.time.advance(by: FailureDelay.pause * 2)
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).factor == .mail)
        #expect(try fixture.failures(of: .totp) == 2 && fixture.failures(of: .mail) == 0)
        #expect(try fixture.budget == 2)
    }

    @Test(arguments: StoreKind.all) func codeOfAnUnusedLengthIsNotCounted(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked).result == .wait)
        try fixture.give(.totp)
        #expect(try await fixture.handIn("1234567", asked).result == .wait)
        #expect(try await fixture.handIn("abcd-efgh-2345-ijkl", asked).result == .wait)
        #expect(try fixture.failures(of: .totp) == 0)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'code.wrong'") == 0)
        #expect(fixture.rig.registry.number("twoefay_codes_total{outcome=\"void\"}") == 3)
    }

    /// A request that is repeated after a crash is the same request.
    @Test(arguments: StoreKind.all) func repeatedCodeRequestIsCountedOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        let operations = fixture.rig.relay.operations
        let wrong = operations.new()
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked, as: wrong).result == .wait)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked, as: operations.again(wrong.id)).result == .wait)
        #expect(try fixture.failures(of: .totp) == 1)
        fixture.rig.time.advance(by: FailureDelay.pause)
        let right = operations.new()
        let code = fixture.totp()
        #expect(try await fixture.handIn(code, asked, as: right).result == .success)
        #expect(try await fixture.handIn(code, asked, as: operations.again(right.id)).result == .success)
    }

    /// The probability for an attacker who requests logins and submits codes as fast as possible, for a day and for
    /// a year.
    @Test func guessingProbabilityIsBounded() throws {
        let policy = Policy()
        let codes = 1_000_000.0
        // The right codes of a TOTP device, of a hardware token, and of all codes that one challenge sends.
        let right = Double(2 * CodeWindow.drift + 1) + Double(CodeWindow.lookAhead) + Double(Cascade.mostSendings)
        func pow(_ base: Double, _ exponent: Int) -> Double { (0..<exponent).reduce(1.0) { power, _ in power * base } }
        func chance(_ guesses: Double) -> Double { 1 - pow(1 - right / codes, Int(guesses)) }
        // Ten guesses at all codes together; then codes are locked until they are unlocked.
        let locked = chance(Double(policy.guesses))
        let yearly = chance(365 * Double(policy.guesses))
        let yearlyOfTOTP = 1 - pow(1 - Double(2 * CodeWindow.drift + 1) / codes, 365 * policy.guesses)
        // The pauses between those guesses: 5 s, 10 s, and so on.
        let pauses = (1..<policy.guesses).reduce(0) { $0 + 5 * $1 }
        #expect(
            FailureDelay.wait(after: 1, lastAt: Timestamp(milliseconds: 0), at: Timestamp(milliseconds: 0))
                == .seconds(5))
        print(
            """
            guessing \(Int(right)) codes of \(Int(codes)), \(policy.guesses) tries and then locked: \
            \(locked) a day and \(locked) a year; with the owner's reopening codes once a day: \(locked) a day and \
            \(yearly) a year, with a TOTP device alone \(yearlyOfTOTP); ten tries take \(pauses) s at least
            """)
        #expect(locked < 0.0002)
        // Not worse than with a separate budget for each factor.
        #expect(yearly < 0.065 && yearlyOfTOTP < 0.011)
        #expect(pauses == 225)
    }
}
