import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Temporary codes of the help desk: what they answer, how often, and for how long.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct TemporaryCodeTests {
    private func fixture(
        _ kind: StoreKind, _ policies: [String: String] = [:], hasPhone: Bool = true
    ) async throws -> CodeLoginFixture {
        try await CodeLoginFixture(
            kind, policies: CodeLoginFixture.allowing.merging(["login-limit": "1000"].merging(policies) { $1 }) { $1 },
            hasPhone: hasPhone, webhook: "https://shop.example/hook")
    }

    @Test(arguments: StoreKind.all) func temporaryCodeLogsInOnceWithTheLowestAssurance(kind: StoreKind) async throws {
        for hasPhone in [true, false] {
            let fixture = try await fixture(kind, hasPhone: hasPhone)
            let code = try #require(try await fixture.giveTemporaryCode())
            #expect(try fixture.audited("temporary.issued") == 1)
            #expect(try fixture.announced("temporary.issued") == [1, 1])
            let asked = try await fixture.login()
            #expect(asked.factor == (hasPhone ? .push : nil))
            // As somebody types what was read out.
            let typed = code.lowercased().replacing("-", with: " ").replacing("0", with: "o")
            let reported = try await fixture.handIn(typed, asked)
            #expect(reported.result == .success && reported.factor == .operator)
            #expect(reported.assurance == .low && reported.proof == .code)
            #expect(
                try await fixture.steps(asked) == (hasPhone ? "push skipped, operator answered" : "operator answered"))
            #expect(try fixture.audited("temporary.used") == 1)
            #expect(try fixture.announced("temporary.used") == [1, 1])
            // It is used up: no further login takes it, and it is no guess.
            let next = try await fixture.login()
            let refused = await fixture.outcome(of: code, next)
            if hasPhone {
                #expect(try refused.get().result == .wait)
            } else {
                // No other factor could answer, so the login has failed from the beginning.
                #expect(refused == .failure(.alreadyDecided(result: "failure")))
            }
            #expect(try fixture.budget == 0)
            #expect(try fixture.announced("temporary.used") == [1, 1])
            let shown = try #require(try await fixture.temporaryCode())
            #expect(shown.usesLeft == 0 && shown.lastUsedAt == fixture.rig.time.now())
        }
    }

    @Test(arguments: StoreKind.all) func codeWorksAsOftenAsItMay(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let code = try #require(try await fixture.giveTemporaryCode(uses: 3))
        for left in [2, 1, 0] {
            #expect(try await fixture.handIn(code, try await fixture.login()).factor == .operator)
            #expect(try await fixture.temporaryCode()?.usesLeft == left)
        }
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .wait)
        #expect(try fixture.audited("temporary.used") == 3)
    }

    @Test(arguments: StoreKind.all) func codeExpiresAndTheAuditSaysSo(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let code = try #require(try await fixture.giveTemporaryCode(life: .seconds(600)))
        fixture.rig.time.advance(by: .seconds(600) - .milliseconds(1))
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(fixture.other(code), asked).result == .wait)
        #expect(try fixture.budget == 1)
        fixture.rig.time.advance(by: .seconds(10))
        #expect(try await fixture.handIn(code, asked).result == .wait)
        // The code has ended, so a text of its form is no guess any more.
        #expect(try fixture.budget == 1)
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try await fixture.temporaryCode() == nil)
        #expect(try fixture.rig.count("SELECT count(*) FROM factor WHERE kind = 'operator'") == 0)
        #expect(try fixture.audited("temporary.expired") == 1)
        // The wrong code stays counted, and no right code clears it.
        #expect(try fixture.rig.count("SELECT code_failures_kept FROM user") == 1)
        // A code that was used up has its own row in the audit.
        let next = try #require(try await fixture.giveTemporaryCode(life: .seconds(600)))
        #expect(try await fixture.handIn(next, try await fixture.login()).factor == .operator)
        fixture.rig.time.advance(by: .seconds(601))
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try await fixture.temporaryCode() == nil)
        #expect(try fixture.audited("temporary.expired") == 1 && fixture.audited("temporary.used") == 1)
    }

    @Test(arguments: StoreKind.all) func aUserHasOneCodeAtATime(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let first = try #require(try await fixture.giveTemporaryCode())
        #expect(try await fixture.giveTemporaryCode() == nil)
        let shown = try #require(try await fixture.temporaryCode())
        let second = try #require(try await fixture.giveTemporaryCode(replacing: shown.factor))
        #expect(try await fixture.giveTemporaryCode(replacing: shown.factor) == nil)
        #expect(try fixture.audited("temporary.issued") == 2)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'temporary.revoked' AND outcome = 'replaced'") == 1)
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(first, asked).result == .wait)
        fixture.rig.time.advance(by: FailureDelay.pause)
        #expect(try await fixture.handIn(second, asked).factor == .operator)
        // A code that is used up needs no leave to be replaced, and is not revoked.
        #expect(try await fixture.giveTemporaryCode() != nil)
        #expect(try fixture.audited("temporary.revoked") == 1)
    }

    @Test(arguments: StoreKind.all) func revokedCodeIsVoid(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        #expect(try await !fixture.revokeTemporaryCode())
        let code = try #require(try await fixture.giveTemporaryCode())
        let asked = try await fixture.login()
        #expect(try await fixture.revokeTemporaryCode())
        #expect(try await !fixture.revokeTemporaryCode())
        #expect(try await fixture.handIn(code, asked).result == .wait)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'temporary.revoked' AND outcome = 'operator'") == 1)
    }

    // MARK: Guesses

    @Test(arguments: StoreKind.all) func wrongCodesCountWithThoseOfOtherFactors(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, ["guesses": "3"])
        try fixture.give(.totp)
        let code = try #require(try await fixture.giveTemporaryCode())
        let asked = try await fixture.login(expiresIn: 600)
        for (round, wrong) in [fixture.other(code), CodeLoginFixture.wrong, fixture.other(code)].enumerated() {
            fixture.rig.time.advance(by: FailureDelay.pause * round)
            #expect(try await fixture.handIn(wrong, asked).result == .wait)
            #expect(try fixture.budget == Int64(round + 1))
        }
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'code.wrong' AND outcome = 'operator'") == 2)
        #expect(try fixture.areCodesLocked)
        #expect(await fixture.outcome(of: code, asked) == .failure(.codesLocked))
        // While codes are locked, none is given out.
        let shown = try #require(try await fixture.temporaryCode())
        #expect(try await fixture.giveTemporaryCode(replacing: shown.factor) == nil)
        #expect(try await fixture.unlockByOperator())
        #expect(try await fixture.handIn(code, try await fixture.login()).factor == .operator)
    }

    @Test(arguments: StoreKind.all) func rightCodeClearsItsOwnWrongOnes(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        try fixture.give(.totp)
        let code = try #require(try await fixture.giveTemporaryCode())
        let asked = try await fixture.login(expiresIn: 600)
        _ = try await fixture.handIn(fixture.other(code), asked)
        fixture.rig.time.advance(by: FailureDelay.pause)
        _ = try await fixture.handIn(CodeLoginFixture.wrong, asked)
        #expect(try fixture.failures(of: .operator) == 1 && fixture.budget == 2)
        let early = await fixture.outcome(of: code, asked)
        #expect(early == .failure(.limited(retryAfter: FailureDelay.pause * 2)))
        fixture.rig.time.advance(by: FailureDelay.pause * 2)
        #expect(try await fixture.handIn(code, asked).result == .success)
        #expect(try fixture.budget == 1)
    }

    // MARK: Policies

    @Test(arguments: StoreKind.all) func websiteThatDemandsMoreNeverAcceptsIt(kind: StoreKind) async throws {
        for policies in [["factors": "push, totp"], ["min-assurance": "restricted"]] {
            let fixture = try await fixture(kind, policies)
            let code = try #require(try await fixture.giveTemporaryCode())
            let asked = try await fixture.login()
            #expect(try await fixture.handIn(code, asked).result == .wait)
            #expect(try await fixture.temporaryCode()?.usesLeft == 1)
        }
        let fixture = try await fixture(kind)
        let code = try #require(try await fixture.giveTemporaryCode())
        let asked = try await fixture.login(minAssurance: .substantial)
        #expect(try await fixture.handIn(code, asked).result == .wait)
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .success)
    }

    /// A website with a group of users that may not use temporary codes.
    @Test(arguments: StoreKind.all) func groupsPolicyDecides(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        try fixture.rig.execute("UPDATE user SET policy = '{\"factors\":\"push, totp\"}'")
        let code = try #require(try await fixture.giveTemporaryCode())
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .wait)
        #expect(try await fixture.temporaryCode()?.usesLeft == 1)
    }

    @Test(arguments: StoreKind.all) func websiteSeesTheFactorWhileItCanBeUsed(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, hasPhone: false)
        _ = try #require(try await fixture.giveTemporaryCode(life: .seconds(600)))
        #expect(try await fixture.person.factors().map(\.kind) == [.operator])
        #expect(try await !fixture.person.isProved)
        #expect(try await fixture.login().missing == [.factor])
        fixture.rig.time.advance(by: .seconds(600))
        #expect(try await fixture.person.factors() == [])
    }
}
