import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Too many wrong codes lock codes, over all factors together, and never the phone.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CodeLockTests {
    private static let noRecoveryCode = "abcd-efgh-2345-ijkl"

    private func stage(
        _ kind: StoreKind, _ factors: [Factor], guesses: Int = 10, hasPhone: Bool = true
    ) async throws -> CodeLoginFixture {
        let stage = try await CodeLoginFixture(
            kind, policies: ["guesses": String(guesses), "further-factors": "website", "login-limit": "1000"],
            hasPhone: hasPhone)
        for factor in factors { try stage.give(factor) }
        return stage
    }

    /// A wrong code in a login of its own, once the delay is over.
    private func failInNewLogin(_ stage: CodeLoginFixture, with code: String = CodeLoginFixture.wrong) async throws {
        stage.rig.time.advance(by: .seconds(500))
        let asked = try await stage.login()
        #expect(try await stage.handIn(code, asked).result == .wait)
    }

    private func lock(_ stage: CodeLoginFixture) async throws {
        while try !stage.areCodesLocked { try await failInNewLogin(stage) }
    }

    private func approve(_ asked: OpenedChallenge, _ stage: CodeLoginFixture) async throws -> ChallengeLife.Result {
        let phone = try #require(stage.phone)
        return try await stage.rig.decide(.approve, asked.challenge, number: asked.number, by: phone)
    }

    private func recoveryCode(_ stage: CodeLoginFixture) async throws -> String {
        let person = Person(rig: stage.rig, website: stage.shop, username: "ada", token: stage.ada, code: "")
        return try #require(try await person.addRecoveryCodes().first)
    }

    private func unlock(_ stage: CodeLoginFixture, approval: ChallengeID? = nil) async throws {
        try await stage.rig.on { [shop = stage.shop] relay in
            try await relay.unlock(username: "ada", approval: approval, by: shop, as: relay.operations.new())
        }
    }

    // MARK: The phone

    /// Wrong codes over all factors, right ones, resends, removals, enrolments and a restart in
    /// between: the phone logs in.
    @Test(arguments: StoreKind.all) func signedApprovalWorksDespiteTheCodeLock(
        kind: StoreKind
    ) async throws {
        let stage = try await stage(kind, [.totp, .hotp, .mail])
        let person = Person(rig: stage.rig, website: stage.shop, username: "ada", token: stage.ada, code: "")
        let recovery = try await recoveryCode(stage)
        let restarted = try stage.rig.another()
        for round in 0..<14 {
            stage.rig.time.advance(by: .seconds(500))
            let asked = try await stage.login()
            switch round {
            case 2: _ = try await stage.begin(.mail, asked)
            case 4: try await person.drop(.hotp)
            case 5: try stage.give(.hotp)
            case 6: _ = try await person.addTOTP()
            default: break
            }
            let code = round % 3 == 1 ? Self.noRecoveryCode : CodeLoginFixture.wrong
            let relay = round % 2 == 0 ? restarted : stage.rig.relay
            let outcome = await refusal {
                try await stage.rig.on { [shop = stage.shop] _ in
                    try await relay.backup(
                        asked.challenge, of: nil, code: code, by: shop, as: relay.operations.new())
                }
            }
            #expect(outcome == (round < 10 ? nil : .codesLocked), "\(round)")
            #expect(try stage.budget == Int64(min(round + 1, 10)))
        }
        #expect(try stage.areCodesLocked)
        #expect(try stage.rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 1)
        #expect(try stage.rig.count("SELECT count(*) FROM audit WHERE event = 'codes.locked'") == 1)

        stage.rig.time.advance(by: .seconds(500))
        let asked = try await stage.login()
        #expect(asked.areCodesLocked && asked.factor == .push && asked.number != nil)
        // Right codes are refused as wrong ones are.
        for code in [stage.totp(), CodeLoginFixture.codes[0], recovery, CodeLoginFixture.wrong] {
            #expect(await stage.outcome(of: code, asked) == .failure(.codesLocked))
        }
        #expect(stage.rig.registry.number("twoefay_codes_total{outcome=\"locked\"}") == 6)
        #expect(stage.rig.registry.number("twoefay_codes_locked_total") == 1)
        #expect(try await approve(asked, stage) == .success)
        // An approval of a login opens nothing.
        #expect(try stage.areCodesLocked)
    }

    @Test(arguments: StoreKind.all) func openLoginContinuesByPhoneAfterTheCodeLock(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp, .mail], guesses: 1)
        let asked = try await stage.login(factors: [.push, .mail])
        _ = try await stage.begin(.mail, asked)
        #expect(try await stage.handIn(CodeLoginFixture.wrong, asked).result == .wait)
        #expect(try stage.areCodesLocked)
        #expect(try await stage.told(asked).result == .wait)
        #expect(try await stage.steps(asked) == "push expired, mail undeliverable")
        #expect(await refusal { try await stage.begin(.mail, asked) } == .codesLocked)
        #expect(try await approve(asked, stage) == .success)
    }

    @Test(arguments: StoreKind.all) func codeLockEndsALoginThatOnlyCodesCouldAnswer(kind: StoreKind) async throws {
        for hasPhone in [true, false] {
            let stage = try await stage(kind, [.totp], guesses: 1, hasPhone: hasPhone)
            let factors: [Factor]? = hasPhone ? [.totp] : nil
            let asked = try await stage.login(factors: factors)
            let told = try await stage.handIn(CodeLoginFixture.wrong, asked)
            #expect(told.result == .failure && told.reason == .locked)
            let next = try await stage.login(factors: factors)
            #expect(try await stage.told(next).reason == .locked && next.areCodesLocked)
        }
    }

    // MARK: The budget

    /// Guesses at an app and at recovery codes could have been of one factor each, and use up one budget.
    @Test(arguments: StoreKind.all) func codeFactorsShareOneBudgetAndDelay(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp, .recovery], guesses: 4)
        for (round, code) in [CodeLoginFixture.wrong, Self.noRecoveryCode, CodeLoginFixture.wrong].enumerated() {
            try await failInNewLogin(stage, with: code)
            #expect(try stage.budget == Int64(round + 1))
            let asked = try await stage.login()
            for other in [CodeLoginFixture.wrong, Self.noRecoveryCode] {
                let expected = Refusal.limited(retryAfter: FailureDelay.pause * (round + 1))
                #expect(await stage.outcome(of: other, asked) == .failure(expected))
            }
        }
        #expect(try !stage.areCodesLocked)
        try await failInNewLogin(stage, with: Self.noRecoveryCode)
        #expect(try stage.areCodesLocked)
        #expect(try stage.failures(of: .totp) == 2 && stage.failures(of: .recovery) == 2)
    }

    @Test(arguments: StoreKind.all) func rightCodeKeepsOtherFactorsFailures(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp, .hotp, .recovery])
        // Each of the first could have been of the app or of the token, each of the second is a recovery code.
        for code in [
            CodeLoginFixture.wrong, CodeLoginFixture.wrong, Self.noRecoveryCode, Self.noRecoveryCode,
            CodeLoginFixture.wrong,
        ] {
            try await failInNewLogin(stage, with: code)
        }
        #expect(try stage.budget == 5)
        stage.rig.time.advance(by: .seconds(500))
        #expect(try await stage.handIn(CodeLoginFixture.codes[0], try await stage.login()).factor == .hotp)
        #expect(try stage.failures(of: .hotp) == 0 && stage.failures(of: .totp) == 3)
        #expect(try stage.failures(of: .recovery) == 2)
        // Three are the app's still; two of them may be all that the recovery codes share with it, as far as is known.
        #expect(try stage.budget >= 3)
        let left = try stage.budget
        stage.rig.time.advance(by: .seconds(500))
        #expect(try await stage.handIn(stage.totp(), try await stage.login()).factor == .totp)
        #expect(try stage.budget == max(2, left - 3))
    }

    /// Guesses at a removed factor still count.
    @Test(arguments: StoreKind.all) func removedFactorKeepsItsFailures(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp, .hotp])
        let person = Person(rig: stage.rig, website: stage.shop, username: "ada", token: stage.ada, code: "")
        for _ in 0..<3 { try await failInNewLogin(stage) }
        try await person.drop(.hotp)
        try stage.give(.hotp)
        stage.rig.time.advance(by: .seconds(500))
        #expect(try await stage.handIn(CodeLoginFixture.codes[0], try await stage.login()).factor == .hotp)
        #expect(try await stage.handIn(stage.totp(), try await stage.login()).factor == .totp)
        #expect(try stage.failures(of: .totp) == 0 && stage.failures(of: .hotp) == 0)
        #expect(try stage.budget == 3)
    }

    // MARK: Reopening

    @Test(arguments: StoreKind.all) func approvalForUnlockLiftsTheCodeLock(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp], guesses: 2)
        let phone = try #require(stage.phone)
        try await lock(stage)
        stage.rig.time.advance(by: .seconds(500))
        let login = try await stage.login()
        #expect(try await approve(login, stage) == .success)
        #expect(await refusal { try await unlock(stage, approval: login.challenge) } == Relay.noApproval)

        guard case .approvalRequired(let approval, let number?) = await refusal({ try await unlock(stage) }) else {
            throw RigFailure("the user was not asked")
        }
        await stage.rig.settled()
        // Nothing but the phone may approve of that, and nothing has changed before it has.
        #expect(
            await refusal { try await unlock(stage, approval: approval) }
                == .approvalRequired(approval, number: number))
        #expect(try stage.areCodesLocked)
        #expect(try await stage.rig.decide(.approve, approval, number: number, by: phone) == .success)
        try await unlock(stage, approval: approval)
        #expect(try !stage.areCodesLocked && stage.budget == 0 && stage.failures(of: .totp) == 0)
        #expect(
            try stage.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'codes.unlocked' AND proof = 'signed'") == 1)
        // Once more: there is nothing to do.
        try await unlock(stage)
        #expect(try await stage.handIn(stage.totp(), try await stage.login()).result == .success)

        // It was for that lock, and for no other.
        try await lock(stage)
        #expect(await refusal { try await unlock(stage, approval: approval) } == Relay.noApproval)
        #expect(try stage.areCodesLocked)
        #expect(try await stage.unlockByOperator())
        #expect(try !stage.areCodesLocked && stage.budget == 0)
    }

    @Test(arguments: StoreKind.all) func deniedApprovalLiftsNoCodeLock(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp], guesses: 1)
        let phone = try #require(stage.phone)
        try await lock(stage)
        guard case .approvalRequired(let approval, _) = await refusal({ try await unlock(stage) }) else {
            throw RigFailure("the user was not asked")
        }
        #expect(try await stage.rig.decide(.deny, approval, by: phone) == .failure)
        #expect(await refusal { try await unlock(stage, approval: approval) } == Relay.noApproval)
        #expect(try stage.areCodesLocked)
    }

    /// A recovery code is a code: it is refused, and is not used up.
    @Test(arguments: StoreKind.all) func recoveryCodeLiftsNoCodeLock(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp], guesses: 1)
        let code = try await recoveryCode(stage)
        try await lock(stage)
        try stage.rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        let person = Person(rig: stage.rig, website: stage.shop, username: "ada", token: stage.ada, code: "")
        #expect(await refusal { try await person.unlock(by: code) } == .codesLocked)
        #expect(try stage.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 0)
        #expect(try stage.areCodesLocked)
    }

    /// An approval that is used many times at once counts once.
    @Test(arguments: StoreKind.all) func approvalLiftsTheCodeLockOnce(kind: StoreKind) async throws {
        let stage = try await stage(kind, [.totp], guesses: 1)
        let phone = try #require(stage.phone)
        try await lock(stage)
        guard case .approvalRequired(let approval, let number) = await refusal({ try await unlock(stage) }) else {
            throw RigFailure("the user was not asked")
        }
        #expect(try await stage.rig.decide(.approve, approval, number: number, by: phone) == .success)
        let refusals = await withTaskGroup(of: Refusal?.self) { group in
            for _ in 0..<12 { group.addTask { await refusal { try await unlock(stage, approval: approval) } } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(refusals.allSatisfy { $0 == nil || $0 == Relay.noApproval })
        #expect(try stage.rig.count("SELECT count(*) FROM audit WHERE event = 'codes.unlocked'") == 1)
        #expect(try !stage.areCodesLocked)
    }
}
