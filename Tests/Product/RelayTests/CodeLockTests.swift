import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The lock of codes: too many wrong codes, over all factors together, lock codes and never the
/// phone.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CodeLockTests {
    private static let noRecoveryCode = "abcd-efgh-2345-ijkl"

    private func fixture(
        _ kind: StoreKind, _ factors: [Factor], guesses: Int = 10, hasPhone: Bool = true
    ) async throws -> CodeLoginFixture {
        let fixture = try await CodeLoginFixture(
            kind, policies: ["guesses": String(guesses), "further-factors": "website", "login-limit": "1000"],
            hasPhone: hasPhone)
        for factor in factors { try fixture.give(factor) }
        return fixture
    }

    /// Submits a wrong code in a new login, after the delay.
    private func failInNewLogin(_ fixture: CodeLoginFixture, with code: String = CodeLoginFixture.wrong) async throws {
        fixture.rig.time.advance(by: .seconds(500))
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(code, asked).result == .wait)
    }

    private func lock(_ fixture: CodeLoginFixture) async throws {
        while try !fixture.areCodesLocked { try await failInNewLogin(fixture) }
    }

    private func approve(_ asked: OpenedChallenge, _ fixture: CodeLoginFixture) async throws -> ChallengeLife.Result {
        let phone = try #require(fixture.phone)
        return try await fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone)
    }

    private func recoveryCode(_ fixture: CodeLoginFixture) async throws -> String {
        let person = Person(rig: fixture.rig, website: fixture.shop, username: "ada", token: fixture.ada, code: "")
        return try #require(try await person.addRecoveryCodes().first)
    }

    private func unlock(_ fixture: CodeLoginFixture, approval: ChallengeID? = nil) async throws {
        try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.unlock(username: "ada", approval: approval, by: shop, as: relay.operations.new())
        }
    }

    // MARK: The phone

    /// The phone can log in after wrong codes for all factors, with right codes, resends, removals,
    /// enrolments and a restart between them.
    @Test(arguments: StoreKind.all) func signedApprovalWorksDespiteTheCodeLock(
        kind: StoreKind
    ) async throws {
        let fixture = try await fixture(kind, [.totp, .hotp, .mail])
        let person = Person(rig: fixture.rig, website: fixture.shop, username: "ada", token: fixture.ada, code: "")
        let recovery = try await recoveryCode(fixture)
        let restarted = try fixture.rig.another()
        for round in 0..<14 {
            fixture.rig.time.advance(by: .seconds(500))
            let asked = try await fixture.login()
            switch round {
            case 2: _ = try await fixture.begin(.mail, asked)
            case 4: try await person.drop(.hotp)
            case 5: try fixture.give(.hotp)
            case 6:
                try await person.drop(.totp)
                _ = try await person.addTOTP()
            default: break
            }
            let code = round % 3 == 1 ? Self.noRecoveryCode : CodeLoginFixture.wrong
            let relay = round % 2 == 0 ? restarted : fixture.rig.relay
            let outcome = await refusal {
                try await fixture.rig.on { [shop = fixture.shop] _ in
                    try await relay.backup(
                        asked.challenge, of: nil, code: code, by: shop, as: relay.operations.new())
                }
            }
            #expect(outcome == (round < 10 ? nil : .codesLocked), "\(round)")
            #expect(try fixture.budget == Int64(min(round + 1, 10)))
        }
        #expect(try fixture.areCodesLocked)
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'codes.locked'") == 1)

        fixture.rig.time.advance(by: .seconds(500))
        let asked = try await fixture.login()
        #expect(asked.areCodesLocked && asked.factor == .push && asked.number != nil)
        // Right codes are refused like wrong ones.
        for code in [fixture.totp(), CodeLoginFixture.codes[0], recovery, CodeLoginFixture.wrong] {
            #expect(await fixture.outcome(of: code, asked) == .failure(.codesLocked))
        }
        #expect(fixture.rig.registry.number("twoefay_codes_total{outcome=\"locked\"}") == 6)
        #expect(fixture.rig.registry.number("twoefay_codes_locked_total") == 1)
        #expect(try await approve(asked, fixture) == .success)
        // The approval of a login unlocks no codes.
        #expect(try fixture.areCodesLocked)
    }

    @Test(arguments: StoreKind.all) func openLoginContinuesByPhoneAfterTheCodeLock(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp, .mail], guesses: 1)
        let asked = try await fixture.login(factors: [.push, .mail])
        _ = try await fixture.begin(.mail, asked)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked).result == .wait)
        #expect(try fixture.areCodesLocked)
        #expect(try await fixture.reported(asked).result == .wait)
        #expect(try await fixture.steps(asked) == "push expired, mail undeliverable")
        #expect(await refusal { try await fixture.begin(.mail, asked) } == .codesLocked)
        #expect(try await approve(asked, fixture) == .success)
    }

    @Test(arguments: StoreKind.all) func codeLockEndsALoginThatOnlyCodesCouldAnswer(kind: StoreKind) async throws {
        for hasPhone in [true, false] {
            let fixture = try await fixture(kind, [.totp], guesses: 1, hasPhone: hasPhone)
            let factors: [Factor]? = hasPhone ? [.totp] : nil
            let asked = try await fixture.login(factors: factors)
            let reported = try await fixture.handIn(CodeLoginFixture.wrong, asked)
            #expect(reported.result == .failure && reported.reason == .locked)
            let next = try await fixture.login(factors: factors)
            #expect(try await fixture.reported(next).reason == .locked && next.areCodesLocked)
        }
    }

    // MARK: The budget

    /// Wrong codes for an app and wrong recovery codes each fit only one factor, and use up one
    /// budget.
    @Test(arguments: StoreKind.all) func codeFactorsShareOneBudgetAndDelay(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp, .recovery], guesses: 4)
        for (round, code) in [CodeLoginFixture.wrong, Self.noRecoveryCode, CodeLoginFixture.wrong].enumerated() {
            try await failInNewLogin(fixture, with: code)
            #expect(try fixture.budget == Int64(round + 1))
            let asked = try await fixture.login()
            for other in [CodeLoginFixture.wrong, Self.noRecoveryCode] {
                let expected = Refusal.limited(retryAfter: FailureDelay.pause * (round + 1))
                #expect(await fixture.outcome(of: other, asked) == .failure(expected))
            }
        }
        #expect(try !fixture.areCodesLocked)
        try await failInNewLogin(fixture, with: Self.noRecoveryCode)
        #expect(try fixture.areCodesLocked)
        #expect(try fixture.failures(of: .totp) == 2 && fixture.failures(of: .recovery) == 2)
    }

    @Test(arguments: StoreKind.all) func rightCodeKeepsOtherFactorsFailures(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp, .hotp, .recovery])
        // Codes of the first kind fit the app and the token; those of the second kind fit only
        // recovery codes.
        for code in [
            CodeLoginFixture.wrong, CodeLoginFixture.wrong, Self.noRecoveryCode, Self.noRecoveryCode,
            CodeLoginFixture.wrong,
        ] {
            try await failInNewLogin(fixture, with: code)
        }
        #expect(try fixture.budget == 5)
        fixture.rig.time.advance(by: .seconds(500))
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], try await fixture.login()).factor == .hotp)
        #expect(try fixture.failures(of: .hotp) == 0 && fixture.failures(of: .totp) == 3)
        #expect(try fixture.failures(of: .recovery) == 2)
        // Three failures remain for the app. Two of them may be those that the recovery codes share
        // with it, as far as the counts show.
        #expect(try fixture.budget >= 3)
        let left = try fixture.budget
        fixture.rig.time.advance(by: .seconds(500))
        #expect(try await fixture.handIn(fixture.totp(), try await fixture.login()).factor == .totp)
        #expect(try fixture.budget == max(2, left - 3))
    }

    /// Wrong codes of a removed factor still count.
    @Test(arguments: StoreKind.all) func removedFactorKeepsItsFailures(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp, .hotp])
        let person = Person(rig: fixture.rig, website: fixture.shop, username: "ada", token: fixture.ada, code: "")
        for _ in 0..<3 { try await failInNewLogin(fixture) }
        try await person.drop(.hotp)
        try fixture.give(.hotp)
        fixture.rig.time.advance(by: .seconds(500))
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], try await fixture.login()).factor == .hotp)
        #expect(try await fixture.handIn(fixture.totp(), try await fixture.login()).factor == .totp)
        #expect(try fixture.failures(of: .totp) == 0 && fixture.failures(of: .hotp) == 0)
        #expect(try fixture.budget == 3)
    }

    // MARK: Unlocking

    @Test(arguments: StoreKind.all) func approvalForUnlockLiftsTheCodeLock(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp], guesses: 2)
        let phone = try #require(fixture.phone)
        try await lock(fixture)
        fixture.rig.time.advance(by: .seconds(500))
        let login = try await fixture.login()
        #expect(try await approve(login, fixture) == .success)
        #expect(await refusal { try await unlock(fixture, approval: login.challenge) } == Relay.noApproval)

        guard case .approvalRequired(let approval, let number?) = await refusal({ try await unlock(fixture) }) else {
            throw RigFailure("the user was not asked")
        }
        await fixture.rig.settled()
        // Only the phone may approve this, and nothing changes before the approval.
        #expect(
            await refusal { try await unlock(fixture, approval: approval) }
                == .approvalRequired(approval, number: number))
        #expect(try fixture.areCodesLocked)
        #expect(try await fixture.rig.decide(.approve, approval, number: number, by: phone) == .success)
        try await unlock(fixture, approval: approval)
        #expect(try !fixture.areCodesLocked && fixture.budget == 0 && fixture.failures(of: .totp) == 0)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'codes.unlocked' AND proof = 'signed'") == 1)
        // A repetition has nothing to do.
        try await unlock(fixture)
        #expect(try await fixture.handIn(fixture.totp(), try await fixture.login()).result == .success)

        // The approval was for that lock only.
        try await lock(fixture)
        #expect(await refusal { try await unlock(fixture, approval: approval) } == Relay.noApproval)
        #expect(try fixture.areCodesLocked)
        #expect(try await fixture.unlockByOperator())
        #expect(try !fixture.areCodesLocked && fixture.budget == 0)
    }

    @Test(arguments: StoreKind.all) func deniedApprovalLiftsNoCodeLock(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp], guesses: 1)
        let phone = try #require(fixture.phone)
        try await lock(fixture)
        guard case .approvalRequired(let approval, _) = await refusal({ try await unlock(fixture) }) else {
            throw RigFailure("the user was not asked")
        }
        #expect(try await fixture.rig.decide(.deny, approval, by: phone) == .failure)
        #expect(await refusal { try await unlock(fixture, approval: approval) } == Relay.noApproval)
        #expect(try fixture.areCodesLocked)
    }

    /// Recovery codes are codes too: while codes are locked, one is refused and not used up.
    @Test(arguments: StoreKind.all) func recoveryCodeLiftsNoCodeLock(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp], guesses: 1)
        let code = try await recoveryCode(fixture)
        try await lock(fixture)
        try fixture.rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        let person = Person(rig: fixture.rig, website: fixture.shop, username: "ada", token: fixture.ada, code: "")
        #expect(await refusal { try await person.unlock(by: code) } == .codesLocked)
        #expect(try fixture.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 0)
        #expect(try fixture.areCodesLocked)
    }

    /// An approval that is used many times at the same time counts once.
    @Test(arguments: StoreKind.all) func approvalLiftsTheCodeLockOnce(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, [.totp], guesses: 1)
        let phone = try #require(fixture.phone)
        try await lock(fixture)
        guard case .approvalRequired(let approval, let number) = await refusal({ try await unlock(fixture) }) else {
            throw RigFailure("the user was not asked")
        }
        #expect(try await fixture.rig.decide(.approve, approval, number: number, by: phone) == .success)
        let refusals = await withTaskGroup(of: Refusal?.self) { group in
            for _ in 0..<12 { group.addTask { await refusal { try await unlock(fixture, approval: approval) } } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(refusals.allSatisfy { $0 == nil || $0 == Relay.noApproval })
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'codes.unlocked'") == 1)
        #expect(try !fixture.areCodesLocked)
    }
}
