import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The policy `code-retries`: what a wrong code does to its challenge.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CodeRetryTests {
    @Test(arguments: StoreKind.all) func wrongCodeIsTriedAgainByDefault(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        try fixture.give(.sms)
        let asked = try await fixture.login()
        let reported = try await fixture.handIn(CodeLoginFixture.wrong, asked)
        #expect(reported.result == .wait && reported.reason == nil && reported.factor == .totp)
        #expect(fixture.rig.texts.sent.isEmpty)
        fixture.rig.time.advance(by: FailureDelay.pause)
        #expect(try await fixture.handIn(fixture.totp(), asked).result == .success)
    }

    @Test(arguments: StoreKind.all, [Factor.totp, .mail])
    func wrongCodeCancelsTheLogin(kind: StoreKind, factor: Factor) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "cancel"])
        try fixture.give(factor)
        try fixture.rig.execute("UPDATE website SET webhook_url = 'https://shop.example.com/hook'")
        let asked = try await fixture.login()
        _ = try await fixture.begin(factor, asked)
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        let reported = try await fixture.handIn(CodeLoginFixture.wrong, asked, as: operation)
        #expect(reported.result == .failure && reported.reason == .wrongCode && reported.proof == nil)
        #expect(try await fixture.steps(asked) == "push expired, \(factor) skipped")
        // The same request again, because its answer was lost: nothing counts twice.
        let again = fixture.rig.relay.operations.again(operation.id)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked, as: again) == reported)
        #expect(try fixture.budget == 1 && fixture.failures(of: factor) == 1)
        fixture.rig.time.advance(by: FailureDelay.pause)
        let right = factor == .totp ? fixture.totp() : CodeLoginFixture.codes[0]
        #expect(await fixture.outcome(of: right, asked) == .failure(.alreadyDecided(result: "failure")))
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await fixture.rig.decide(
                .approve, asked.challenge, number: asked.number, by: try #require(fixture.phone))
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE event = 'login.decided'") == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind <> 'webhook'") == 0)
        let audited = "SELECT count(*) FROM audit WHERE event = 'challenge.ended' AND outcome = 'wrong_code'"
        #expect(try fixture.rig.count(audited) == 1)
        // The next login accepts the next code.
        let next = try await fixture.login(factors: [factor])
        let good = factor == .totp ? fixture.totp() : CodeLoginFixture.codes[1]
        #expect(try await fixture.handIn(good, next).result == .success)
    }

    @Test(arguments: StoreKind.all) func simultaneousWrongCodesCancelOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "cancel"], hasPhone: false)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        let outcomes = await withTaskGroup(of: Result<ChallengeResult, Refusal>.self) { group in
            for _ in 0..<20 { group.addTask { await fixture.outcome(of: CodeLoginFixture.wrong, asked) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count { (try? $0.get())?.reason == .wrongCode } == 1)
        #expect(try fixture.budget == 1)
    }

    /// The code has a form that none of the user's codes has.
    @Test(arguments: StoreKind.all) func codeOfAnotherLengthCancelsButDoesNotCount(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "cancel"], hasPhone: false)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        let reported = try await fixture.handIn("12345678", asked, as: operation)
        #expect(reported.reason == .wrongCode)
        let again = fixture.rig.relay.operations.again(operation.id)
        #expect(try await fixture.handIn("12345678", asked, as: again) == reported)
        #expect(try fixture.budget == 0)
    }

    @Test(arguments: StoreKind.all) func uncheckedCodeChangesNothing(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "cancel"], hasPhone: false)
        try fixture.give(.totp)
        _ = try await fixture.handIn(CodeLoginFixture.wrong, try await fixture.login())
        let asked = try await fixture.login()
        // The second one has the form of none of the user's codes.
        for code in [CodeLoginFixture.wrong, "12345678"] {
            #expect(
                await fixture.outcome(of: code, asked) == .failure(.limited(retryAfter: FailureDelay.pause)), "\(code)")
        }
        #expect(try await fixture.reported(asked).result == .wait)
    }

    /// A form that is submitted twice, with a code of a wrong form, sends one code.
    @Test(arguments: StoreKind.all) func secondCodeOfAWrongFormKeepsTheLogin(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend"], hasPhone: false)
        for factor in [Factor.totp, .sms] { try fixture.give(factor) }
        let asked = try await fixture.login()
        for _ in 0..<2 { #expect(try await fixture.handIn("12345678", asked).result == .wait) }
        await fixture.rig.settled()
        #expect(fixture.rig.texts.sent.compactMap(\.code) == [CodeLoginFixture.codes[0]])
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).factor == .sms)
    }

    @Test(arguments: StoreKind.all) func lastGuessEndsItsLoginAndLocksCodes(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "cancel", "guesses": "1"])
        try fixture.give(.totp)
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked).reason == .wrongCode)
        #expect(try fixture.areCodesLocked)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'codes.locked'") == 1)
    }

    @Test(arguments: StoreKind.all) func wrongAppCodeIsFollowedByASentCode(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend"], hasPhone: false)
        for factor in [Factor.totp, .sms, .mail] { try fixture.give(factor) }
        let asked = try await fixture.login()
        let first = try await fixture.handIn(CodeLoginFixture.wrong, asked)
        await fixture.rig.settled()
        #expect(first.result == .wait && first.reason == nil && first.factor == .sms)
        #expect(try await fixture.steps(asked) == "totp expired, sms sent")
        #expect(fixture.rig.texts.sent.compactMap(\.code) == [CodeLoginFixture.codes[0]])
        fixture.rig.time.advance(by: FailureDelay.pause)
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).factor == .sms)
        // The next login: the sent code is wrong, too.
        let next = try await fixture.login()
        _ = try await fixture.handIn(CodeLoginFixture.wrong, next)
        fixture.rig.time.advance(by: FailureDelay.pause * 2)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, next).reason == .wrongCode)
        #expect(fixture.rig.mails.sent.isEmpty)
    }

    /// The person types at the website, while the phone shows the login.
    @Test(arguments: StoreKind.all) func codeIsSentWhileThePhoneShowsTheLogin(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend"])
        for factor in [Factor.totp, .mail] { try fixture.give(factor) }
        let asked = try await fixture.login()
        let phone = try #require(fixture.phone)
        _ = try await fixture.rig.on { relay in try await relay.pending(for: phone.credential) }
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked).factor == .mail)
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
    }

    @Test(arguments: StoreKind.all) func loginEndsIfNoCodeCanBeSent(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend"], hasPhone: false)
        try fixture.give(.totp)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, try await fixture.login()).reason == .wrongCode)
        // The user's only address has received all the messages of this hour.
        try fixture.give(.sms)
        for _ in 0..<5 { #expect(try await fixture.login(factors: [.sms]).factor == .sms) }
        fixture.rig.time.advance(by: FailureDelay.pause)
        let asked = try await fixture.login()
        #expect(asked.factor == .totp)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked).reason == .wrongCode)
        #expect(try await fixture.steps(asked) == "totp expired, sms refused")
    }

    /// The relay died after it had counted the code, and before it sent another one.
    @Test(arguments: StoreKind.all) func repetitionSendsTheCodeOfADeadRelay(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend"], hasPhone: false)
        let app = try fixture.give(.totp)
        try fixture.give(.mail)
        let asked = try await fixture.login()
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        let wrong = WrongCode(
            user: fixture.id, factors: [app], challenge: asked.challenge, before: .none, guesses: 10,
            at: fixture.rig.time.now())
        let store = fixture.rig.store
        _ = try await fixture.rig.on { _ in try await store.countWrong(wrong, as: operation) }
        for _ in 0..<2 {
            let again = fixture.rig.relay.operations.again(operation.id)
            #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked, as: again).factor == .mail)
            await fixture.rig.settled()
        }
        #expect(try fixture.budget == 1)
        #expect(try await fixture.steps(asked) == "totp expired, mail sent")
        #expect(fixture.rig.mails.sent.count == 1)
    }

    /// The last guess locks the codes. The login stays open for the phone, also if the request is
    /// repeated because its answer was lost.
    @Test(arguments: StoreKind.all) func lockingCodeLeavesTheLoginToThePhone(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend", "guesses": "1"])
        for factor in [Factor.totp, .mail] { try fixture.give(factor) }
        let asked = try await fixture.login()
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        _ = try await fixture.handIn(CodeLoginFixture.wrong, asked, as: operation)
        #expect(try fixture.areCodesLocked)
        let again = fixture.rig.relay.operations.again(operation.id)
        #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked, as: again).result == .wait)
        let phone = try #require(fixture.phone)
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
    }

    /// The code has a form that none of the user's codes has, so it does not count. A repetition of
    /// the request does not end the login for which the first run sent a code.
    @Test(arguments: StoreKind.all, ["12345", "000000"])
    func repetitionOfAVoidCodeKeepsTheSentOne(kind: StoreKind, code: String) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["code-retries": "resend"], hasPhone: false)
        try fixture.give(.totp)
        try fixture.rig.execute("UPDATE factor SET digits = 8 WHERE kind = 'totp'")
        try fixture.give(.sms)
        let asked = try await fixture.login()
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        #expect(try await fixture.handIn(code, asked, as: operation).factor == .sms)
        await fixture.rig.settled()
        let again = fixture.rig.relay.operations.again(operation.id)
        let repeated = try await fixture.handIn(code, asked, as: again)
        #expect(repeated.result == .wait && repeated.factor == .sms)
        #expect(try fixture.budget == 0 && fixture.rig.texts.sent.count == 1)
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).result == .success)
    }
}
