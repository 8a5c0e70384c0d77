import DeliveryOutcomes
import Domain
import JSON
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The cascade of one challenge.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CascadeTests {
    @Test(arguments: StoreKind.all) func refusedFactorStartsTheNextAtOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        fixture.rig.pushes.answer(.unregistered(since: nil, reason: "Unregistered"))
        let asked = try await fixture.login()
        #expect(asked.factor == .push && asked.verified)
        #expect(try await fixture.steps(asked) == "push refused, totp sent")
        #expect(try await fixture.reported(asked).factor == .totp)
        let reported = try await fixture.handIn(fixture.totp(), asked)
        #expect(reported.result == .success && reported.factor == .totp && reported.proof == .code)
        #expect(reported.assurance == .substantial && reported.device == nil)
        #expect(try await fixture.steps(asked) == "push refused, totp answered")
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind IN ('next', 'expiry', 'push')") == 0)
    }

    @Test(arguments: StoreKind.all) func unseenPushStartsTheNextFactorAtItsDeadline(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        try fixture.give(.hotp)
        let asked = try await fixture.login()
        try await fixture.later(.seconds(29))
        #expect(try await fixture.steps(asked) == "push sent")
        try await fixture.later(.seconds(1))
        #expect(try await fixture.steps(asked) == "push expired, totp sent")
        try await fixture.later(.seconds(89))
        #expect(try await fixture.steps(asked) == "push expired, totp sent")
        try await fixture.later(.seconds(1))
        #expect(try await fixture.steps(asked) == "push expired, totp expired, hotp sent")
        // No factor is left, so the last one has until the challenge ends.
        try await fixture.later(.seconds(179))
        #expect(try await fixture.steps(asked) == "push expired, totp expired, hotp sent")
        try await fixture.later(.seconds(1))
        #expect(try await fixture.steps(asked) == "push expired, totp expired, hotp expired")
        #expect(try await fixture.reported(asked).reason == .expired)
    }

    @Test(arguments: StoreKind.all) func lateApprovalCounts(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        try await fixture.later(.seconds(30))
        let phone = try #require(fixture.phone)
        fixture.rig.time.advance(by: .seconds(15))
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
        let reported = try await fixture.reported(asked)
        #expect(reported.factor == .push && reported.proof == .signed && reported.assurance == .high)
        #expect(try await fixture.steps(asked) == "push expired, totp skipped, push answered")
        await #expect(throws: Refusal.alreadyDecided(result: "success")) {
            try await fixture.handIn(fixture.totp(), asked)
        }
    }

    @Test(arguments: StoreKind.all, [Decision.deny, .fraud])
    func denialStopsTheCascade(kind: StoreKind, decision: Decision) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        try fixture.give(.hotp)
        let asked = try await fixture.login()
        try await fixture.later(.seconds(30))
        #expect(try await fixture.rig.decide(decision, asked.challenge, by: try #require(fixture.phone)) == .failure)
        try await fixture.later(.seconds(90))
        #expect(try await fixture.steps(asked) == "push expired, totp skipped, push answered")
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await fixture.handIn(fixture.totp(), asked)
        }
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) { try await fixture.begin(.hotp, asked) }
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE challenge_id IS NOT NULL") == 0)
    }

    /// A push that the user has seen: no other factor begins, unless the website begins one.
    @Test(arguments: StoreKind.all) func seenPushKeepsItsTime(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        let phone = try #require(fixture.phone?.credential)
        #expect(try await fixture.rig.on { relay in try await relay.pending(for: phone) }.count == 1)
        try await fixture.later(.seconds(100))
        #expect(try await fixture.steps(asked) == "push seen")
        #expect(try await fixture.begin(.totp, asked).factor == .totp)
        #expect(try await fixture.steps(asked) == "push expired, totp sent")
        // A phone that polls now does not change the step.
        #expect(try await fixture.rig.on { relay in try await relay.pending(for: phone) }.count == 1)
        #expect(try await fixture.steps(asked) == "push expired, totp sent")
    }

    @Test(arguments: StoreKind.all) func quietChallengeContinuesWithCodes(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["push-limit": "1"])
        try fixture.give(.totp)
        _ = try await fixture.login()
        let asked = try await fixture.login()
        #expect(asked.factor == .pull)
        // A push that the website requests is over the limit, too.
        #expect(try await fixture.begin(.push, asked).factor == .pull)
        #expect(fixture.rig.pushes.sent.count == 1)
        try await fixture.later(.seconds(30))
        #expect(try await fixture.steps(asked) == "pull expired, pull expired, totp sent")
    }

    @Test(arguments: StoreKind.all) func messageFactorStartsWithTheLogin(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.sms)
        let asked = try await fixture.login()
        #expect(asked.factor == .sms && !asked.verified)
        #expect(try await fixture.reported(asked).steps.map(\.factor) == [.sms])
        #expect(try fixture.rig.count("SELECT counter FROM factor") == 1)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM sent_code WHERE counter = 0 AND challenge_id = x'\(asked.challenge)'") == 1)
        let reported = try await fixture.handIn(CodeLoginFixture.codes[0], asked)
        #expect(reported.result == .success && reported.factor == .sms && reported.assurance == .restricted)
        #expect(try await fixture.steps(asked) == "sms answered")
    }

    @Test(arguments: StoreKind.all) func resendingKeepsTheEarlierCode(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.mail)
        let asked = try await fixture.login()
        fixture.rig.time.advance(by: .seconds(19))
        await #expect(throws: Refusal.limited(retryAfter: .seconds(1))) { try await fixture.begin(.mail, asked) }
        fixture.rig.time.advance(by: .seconds(1))
        let operation = fixture.rig.relay.operations.new()
        #expect(try await fixture.begin(.mail, asked, as: operation).factor == .mail)
        // A repeated request sends nothing again.
        let again = fixture.rig.relay.operations.again(operation.id)
        #expect(try await fixture.begin(.mail, asked, as: again).factor == .mail)
        #expect(try fixture.rig.count("SELECT counter FROM factor") == 2)
        for _ in 0..<3 {
            fixture.rig.time.advance(by: Cascade.pause)
            _ = try await fixture.begin(.mail, asked)
        }
        fixture.rig.time.advance(by: Cascade.pause)
        await #expect(throws: Refusal.limited(retryAfter: .seconds(200))) { try await fixture.begin(.mail, asked) }
        #expect(try fixture.rig.count("SELECT count(*) FROM sent_code") == 5)
        let reported = try await fixture.handIn(CodeLoginFixture.codes[0], asked)
        #expect(reported.result == .success && reported.assurance == .low)
        // The codes of another challenge do not count.
        let next = try await fixture.login()
        #expect(try await fixture.handIn(CodeLoginFixture.codes[1], next).result == .wait)
    }

    @Test(arguments: StoreKind.all) func websiteRequestAndPolicySelectFactors(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["factors": "push, totp, sms"])
        for factor in [Factor.totp, .sms, .mail] { try fixture.give(factor) }
        let asked = try await fixture.login(factors: [.mail, .sms])
        #expect(asked.factor == .sms && asked.verified)
        #expect(fixture.rig.pushes.sent.isEmpty)
        let phone = try #require(fixture.phone)
        #expect(try await fixture.rig.on { relay in try await relay.pending(for: phone.credential) }.isEmpty)
        await #expect(throws: Refusal.self) {
            try await fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone)
        }
        // A code of a factor that this login does not accept does not count as a failure.
        #expect(try await fixture.handIn(fixture.totp(), asked).result == .wait)
        for factor in [Factor.totp, .mail, .push] {
            do {
                _ = try await fixture.begin(factor, asked)
                Issue.record("\(factor) began")
            } catch Refusal.forbidden {}
        }
        do {
            _ = try await fixture.login(factors: [.mail])
            Issue.record("nothing was left")
        } catch Refusal.invalid(let faults) {
            #expect(faults.map(\.parameter) == ["factors"])
        }
        // A phone may still deny or report fraud, although the login accepts no push.
        #expect(try await fixture.rig.decide(.fraud, asked.challenge, by: phone) == .failure)
    }

    @Test(arguments: StoreKind.all) func successHasAtLeastTheRequestedAssurance(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["number": "0"], hasPhone: false)
        try fixture.give(.sms)
        let asked = try await fixture.login(minAssurance: .substantial)
        let reported = try await fixture.reported(asked)
        #expect(reported.result == .failure && reported.reason == .undeliverable && reported.steps.isEmpty)
        #expect(try await fixture.login(minAssurance: .restricted).factor == .sms)
        do {
            _ = try await fixture.login(minAssurance: .high)
            Issue.record("without a number nothing is worth so much")
        } catch Refusal.invalid(let faults) {
            #expect(faults.map(\.parameter) == ["min_assurance"])
        }
    }

    @Test(arguments: StoreKind.all) func userWithoutFactorsFailsAtOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        let asked = try await fixture.login()
        #expect(asked.factor == nil)
        #expect(try await fixture.reported(asked).reason == .undeliverable)
        try fixture.give(.recovery)
        let open = try await fixture.login()
        #expect(open.factor == nil)
        #expect(try await fixture.reported(open).result == .wait)
        await #expect(throws: Refusal.self) { try await fixture.begin(.mail, open) }
    }

    /// The user has reached the hourly limit: the message is refused, and the next factor begins.
    @Test(arguments: StoreKind.all) func smsFactorRespectsTheBudget(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.sms)
        try fixture.give(.mail)
        for _ in 0..<5 { #expect(try await fixture.login().factor == .sms) }
        let asked = try await fixture.login()
        #expect(asked.factor == .mail)
        let steps = try await fixture.reported(asked).steps
        #expect(steps.map(\.factor) == [.sms, .mail])
        #expect(steps[0].state == .refused && steps[0].reason == "limited")
        #expect(try fixture.rig.count("SELECT counter FROM factor WHERE kind = 'sms'") == 5)
        #expect(try fixture.rig.count("SELECT count(*) FROM sent_code WHERE challenge_id = x'\(asked.challenge)'") == 1)
    }

    @Test(arguments: StoreKind.all) func firstSuccessWins(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let phone = try #require(fixture.phone)
        for round in 0..<5 {
            fixture.rig.time.advance(by: .seconds(90))
            let asked = try await fixture.login()
            let code = fixture.totp()
            async let byPhone = fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone)
            async let byCode = fixture.outcome(of: code, asked)
            let approved = (try? await byPhone) == .success
            let typed = (try? (await byCode).get())?.result == .success
            #expect(approved != typed, "round \(round)")
            let reported = try await fixture.reported(asked)
            #expect(reported.proof == (approved ? .signed : .code) && reported.factor == (approved ? .push : .totp))
            #expect(reported.steps.filter { $0.state == .answered }.map(\.factor) == [approved ? .push : .totp])
        }
    }

    /// Several relays process the outbox while the website requests the factor.
    @Test(arguments: StoreKind.all) func factorStartsOnce(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        fixture.rig.time.advance(by: .seconds(30))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    _ = try? await fixture.rig.on { relay in
                        if number % 2 == 0 {
                            await relay.advance(asked.challenge, because: .due)
                        } else {
                            await relay.processDueEntries()
                        }
                    }
                }
            }
        }
        await fixture.rig.settled()
        #expect(try await fixture.steps(asked) == "push expired, totp sent")
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'factor.begun'") == 1)
    }

    /// One relay has read that no factor is left. Before it ends the cascade, the website begins a factor that
    /// others follow.
    @Test(arguments: StoreKind.all) func staleReadDoesNotEndTheCascade(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        try fixture.give(.hotp)
        let asked = try await fixture.login()
        _ = try await fixture.begin(.totp, asked)
        let nexts = "SELECT count(*) FROM outbox WHERE kind = 'next'"
        for (steps, left) in [(1, Int64(1)), (2, 0)] {
            try await fixture.rig.on { relay in try await relay.store.dropNext(asked.challenge, after: steps) }
            #expect(try fixture.rig.count(nexts) == left)
        }
    }

    /// The website's answer for its user counts like a phone's answer, however far the cascade has advanced.
    @Test(arguments: StoreKind.all) func lateAnswerByTheWebsiteCountsAsThePhones(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["answers": "website"])
        try fixture.give(.mail)
        let asked = try await fixture.login()
        try await fixture.later(.seconds(30))
        #expect(try await fixture.steps(asked) == "push expired, mail sent")
        let result = try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.answer(asked.challenge, of: nil, .approve, by: shop, as: relay.operations.new())
        }
        #expect(result == .success)
        let reported = try await fixture.reported(asked)
        #expect(reported.factor == .push && reported.proof == .website && reported.assurance == .substantial)
        #expect(try await fixture.steps(asked) == "push expired, mail skipped, push answered")
    }

    /// The relay that wrote the login died before it sent the message. Another relay takes the entry when the lease
    /// ends.
    @Test(arguments: StoreKind.all) func cascadeOfADeadRelayContinues(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.mail)
        let asked = try await fixture.login()
        try fixture.rig.execute("DELETE FROM step")
        try fixture.rig.execute("DELETE FROM outbox WHERE kind IN ('mail', 'next')")
        try fixture.rig.execute(
            """
            INSERT INTO outbox (id, kind, challenge_id, due_at, attempts)
            VALUES (x'00000000000000000000000000000009', 'next', x'\(asked.challenge)', '\(fixture.rig.time.now().sql)', 0)
            """)
        try await fixture.later(.zero)
        #expect(try await fixture.reported(asked).steps.map(\.factor) == [.mail])
        #expect(try fixture.rig.count("SELECT count(*) FROM sent_code") == 2)
    }

    /// The phone was unbound while its push was in flight.
    @Test(arguments: StoreKind.all) func unboundPhoneStartsTheNextFactor(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        fixture.rig.pushes.hold()
        let asked = try await fixture.rig.on { [ada = fixture.ada, shop = fixture.shop] relay in
            try await relay.login(LoginRequest(subject: .token(ada)), by: shop, as: relay.operations.new())
        }
        _ = await fixture.rig.pushes.next()
        let phone = try #require(fixture.phone?.credential)
        try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.unbind(phone.id, ofUser: "ada", by: shop)
        }
        fixture.rig.pushes.release()
        await fixture.rig.settled()
        try await fixture.later(.zero)
        #expect(try await fixture.steps(asked) == "push undeliverable, totp sent")
    }

    /// The factor was removed while its step was in progress, and no deadline ends that step.
    @Test(arguments: StoreKind.all) func removedFactorStartsTheNext(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(
            kind, policies: ["code-deadline": "none", "factors": "totp, mail, hotp"], hasPhone: false)
        for factor in [Factor.totp, .mail, .hotp] { try fixture.give(factor) }
        let asked = try await fixture.login()
        try await fixture.rig.on { [shop = fixture.shop] relay in try await relay.drop(.totp, username: "ada", by: shop)
        }
        try await fixture.later(.zero)
        #expect(try await fixture.steps(asked) == "totp undeliverable, mail sent")
        try await fixture.rig.on { [shop = fixture.shop] relay in
            var change = UserChange()
            change.addresses.updateValue(nil, forKey: .mail)
            _ = try await relay.change(
                username: "ada", change, approval: nil, by: shop, as: relay.operations.new())
        }
        try await fixture.later(.zero)
        #expect(try await fixture.steps(asked) == "totp undeliverable, mail undeliverable, hotp sent")
    }

    /// The approval of a further factor requires the strongest factor that the user has.
    @Test(arguments: StoreKind.all) func onlyTheStrongestFactorApproves(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        for factor in [Factor.sms, .totp, .recovery] { try fixture.give(factor) }
        let asked = try await fixture.rig.on { [ada = fixture.ada, shop = fixture.shop, id = fixture.id] relay in
            try await relay.askApproval(.activation(of: id), of: ada, by: shop, as: relay.operations.new())
        }
        await fixture.rig.settled()
        let row = try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.store.challenge(asked.challenge, of: shop.id)
        }
        let policy = try Policy().changed(by: try #require(row).policy)
        #expect(policy.factors == [.push, .recovery])
        #expect(try await fixture.handIn(fixture.totp(), asked).result == .wait)
        #expect(try fixture.failures(of: .totp) == 0)
    }
}
