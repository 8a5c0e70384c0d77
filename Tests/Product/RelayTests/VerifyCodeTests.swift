import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Codes that a website checks outside a login: which are right, how often each is accepted, and
/// the effect of wrong ones.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct VerifyCodeTests {
    private func verify(
        _ code: String, _ fixture: CodeLoginFixture, _ owner: CodeOwner = .username("ada"),
        as operation: Operation? = nil
    ) async throws -> Factor? {
        try await fixture.rig.on { relay in
            try await relay.verify(
                code: code, of: owner, by: fixture.shop, as: operation ?? relay.operations.new())
        }
    }

    private func events(_ event: String, _ fixture: CodeLoginFixture) throws -> Int64 {
        try fixture.rig.count("SELECT count(*) FROM audit WHERE event = '\(event)'")
    }

    @Test(arguments: StoreKind.all) func rightCodeIsAcceptedOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        try fixture.give(.hotp)
        let app = fixture.totp()
        #expect(try await verify(app, fixture) == .totp)
        #expect(try await verify(CodeLoginFixture.codes[3], fixture) == .hotp)
        #expect(try fixture.rig.count("SELECT counter FROM factor WHERE kind = 'hotp'") == 4)
        #expect(try events("code.verified", fixture) == 2)
        #expect(
            try fixture.rig.count("SELECT count(*) FROM factor WHERE last_code_at = '\(fixture.rig.time.now().sql)'")
                == 2)
        // The same codes, and earlier ones of the token, are wrong now.
        for code in [app, CodeLoginFixture.codes[3], CodeLoginFixture.codes[0]] {
            fixture.rig.time.advance(by: .seconds(20))
            #expect(try await verify(code, fixture) == nil)
        }
        #expect(try fixture.budget == 3)
        #expect(try events("code.verified", fixture) == 2)
    }

    /// A code is good for one check or one login, in either order.
    @Test(arguments: StoreKind.all) func codeIsNotAcceptedByCheckAndLogin(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.hotp)
        #expect(try await verify(CodeLoginFixture.codes[0], fixture) == .hotp)
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).result == .wait)
        fixture.rig.time.advance(by: .seconds(5))
        #expect(try await fixture.handIn(CodeLoginFixture.codes[1], asked).result == .success)
        #expect(try await verify(CodeLoginFixture.codes[1], fixture) == nil)
    }

    /// Guesses at the two routes by turns share one count, one pause and one lock.
    @Test(arguments: StoreKind.all) func guessesByTurnsShareOneBudget(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["guesses": "6"], hasPhone: false)
        try fixture.give(.totp)
        for guess in 0..<6 {
            let asked = try await fixture.login()
            if guess % 2 == 0 {
                #expect(try await verify(CodeLoginFixture.wrong, fixture) == nil)
            } else {
                // The lock ends the login, because no phone can answer it.
                let result = try await fixture.handIn(CodeLoginFixture.wrong, asked).result
                #expect(result == (guess < 5 ? .wait : .failure))
            }
            #expect(try fixture.budget == Int64(guess + 1))
            if guess < 5 {
                // The pause after one route holds at the other one, also for the right code.
                let pause = Refusal.limited(retryAfter: .seconds(5 * (guess + 1)))
                await #expect(throws: pause) { try await verify(fixture.totp(), fixture) }
                #expect(await fixture.outcome(of: fixture.totp(), asked) == .failure(pause))
                fixture.rig.time.advance(by: .seconds(5 * (guess + 1)))
            }
        }
        #expect(try fixture.areCodesLocked)
        #expect(try events("codes.locked", fixture) == 1)
        fixture.rig.time.advance(by: .seconds(3600))
        await #expect(throws: Refusal.codesLocked) { try await verify(fixture.totp(), fixture) }
        #expect(try await fixture.unlockByOperator())
        #expect(try await verify(fixture.totp(), fixture) == .totp)
    }

    /// Many wrong codes at once, over both routes and two relays, count exactly once each, and no
    /// more than the budget.
    @Test(arguments: StoreKind.all) func parallelGuessesAreCountedOnceEach(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["guesses": "5"], hasPhone: false)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        let (shop, other) = (fixture.shop, try fixture.rig.another())
        let wrong = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<20 {
                group.addTask {
                    if index % 2 == 0 {
                        return
                            (try? await fixture.rig.on { _ in
                                try await other.verify(
                                    code: CodeLoginFixture.wrong, of: .username("ada"), by: shop,
                                    as: other.operations.new())
                                    == nil
                            }) == true
                    }
                    return (try? await fixture.handIn(CodeLoginFixture.wrong, asked))?.result == .wait
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(try events(WrongCode.event, fixture) == fixture.budget)
        #expect(Int64(wrong) == (try fixture.budget) && wrong <= 5)
    }

    @Test(arguments: StoreKind.all) func sameCodeManyTimesAtOnceIsAcceptedOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        let code = fixture.totp()
        let right = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    (try? await fixture.rig.on { relay in
                        try await relay.verify(
                            code: code, of: .username("ada"), by: fixture.shop, as: relay.operations.new())
                    }) == .some(.totp)
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(right == 1)
        #expect(try events("code.verified", fixture) == 1)
    }

    @Test(arguments: StoreKind.all) func repeatedRequestGetsTheFirstAnswer(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        let (right, wrong) = (fixture.rig.relay.operations.new(), fixture.rig.relay.operations.new())
        let code = fixture.totp()
        #expect(try await verify(code, fixture, as: right) == .totp)
        #expect(try await verify(CodeLoginFixture.wrong, fixture, as: wrong) == nil)
        for _ in 0..<2 {
            #expect(try await verify(code, fixture, as: fixture.rig.relay.operations.again(right.id)) == .totp)
            #expect(
                try await verify(CodeLoginFixture.wrong, fixture, as: fixture.rig.relay.operations.again(wrong.id))
                    == nil)
        }
        #expect(try fixture.budget == 1)
    }

    @Test(arguments: StoreKind.all) func codeOfAnImpossibleFormDoesNotCount(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        #expect(try await verify("12345678", fixture) == nil)
        #expect(try fixture.budget == 0)
        // In the pause after a wrong code it gets the same refusal as every other code.
        #expect(try await verify(CodeLoginFixture.wrong, fixture) == nil)
        await #expect(throws: Refusal.limited(retryAfter: .seconds(5))) { try await verify("12345678", fixture) }
    }

    /// Mailed codes belong to a login, and recovery codes are not spent on a check.
    @Test func onlyAppsAndTokensAreChecked() async throws {
        let fixture = try await CodeLoginFixture(.memory, hasPhone: false)
        try fixture.give(.mail)
        try fixture.give(.recovery)
        let refused = await refusal { try await verify(CodeLoginFixture.codes[0], fixture) }
        guard case .conflict(let faults) = refused else { throw RigFailure("\(String(describing: refused))") }
        #expect(faults.map(\.parameter) == ["otp"] && faults.map(\.code) == [.state])
    }

    @Test(arguments: [UserState.locked, .frozen, .disabled]) func codeOfAStoppedUserIsRefused(state: UserState)
        async throws
    {
        let fixture = try await CodeLoginFixture(.memory, hasPhone: false)
        try fixture.give(.totp)
        try fixture.rig.stop(state)
        guard case .forbidden = await refusal({ try await verify(fixture.totp(), fixture) }) else {
            throw RigFailure("\(state) is not refused")
        }
        #expect(try fixture.budget == 0)
    }

    @Test(arguments: StoreKind.all) func phoneStandsForItsUser(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let phone = try #require(fixture.phone)
        #expect(try await verify(fixture.totp(), fixture, .device(phone.credential.id)) == .totp)
        try fixture.rig.execute("UPDATE device SET state = 'suspended'")
        await #expect(throws: Refusal.notFound) {
            try await verify(fixture.totp(), fixture, .device(phone.credential.id))
        }
    }

    /// A factor that somebody changed by SQL verifies nothing.
    @Test(arguments: StoreKind.all) func forgedFactorVerifiesNothing(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        let code = fixture.totp()
        #expect(try await verify(code, fixture) == .totp)
        try fixture.rig.forge("UPDATE factor SET counter = 0")
        #expect(await refusal { try await verify(code, fixture) } == .broken)
    }
}
