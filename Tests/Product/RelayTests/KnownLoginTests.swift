import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Logins from browsers that the website knows: they have separate limits, and no login from another browser ends
/// them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct KnownLoginTests {
    private struct Fixture: Sendable {
        let rig: RelayRig
        let shop: Website
        let ada: UserToken
        let phone: PhoneCredential

        init(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws {
            rig = try await RelayRig(kind)
            shop = try await rig.website("shop", policies: policies)
            let enrolled = try await rig.enrolled("ada", at: shop)
            (ada, phone) = (enrolled.user, enrolled.credential)
        }

        func ask(known: Bool) async throws -> OpenedChallenge {
            let asked = try await rig.on { [ada, shop] relay in
                try await relay.login(
                    LoginRequest(subject: .token(ada), isKnown: known), by: shop, as: relay.operations.new())
            }
            await rig.settled()
            return asked
        }

        func reported(_ asked: OpenedChallenge) async throws -> ChallengeResult {
            try await rig.on { [shop] relay in try await relay.result(asked.challenge, to: shop) }
        }

        func shown() async throws -> [ChallengeID] {
            try await rig.on { [phone] relay in try await relay.pending(for: phone).map(\.challenge) }
        }

        func approve(_ asked: OpenedChallenge) async throws -> ChallengeLife.Result {
            try await rig.on { [phone] relay in
                try await relay.answer(
                    asked.challenge, PhoneAnswer(approves: true, number: asked.number), by: phone)
            }
        }
    }

    @Test(arguments: StoreKind.all) func otherBrowsersCannotSupersedeAKnownLogin(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        // A person with the password requests logins, until none is pushed and none is opened.
        for number in 0..<25 {
            let outcome = await refusal { try await fixture.ask(known: false) }
            #expect((outcome == nil) == (number < 20))
        }
        #expect(fixture.rig.pushes.sent.count == 5)
        let known = try await fixture.ask(known: true)
        #expect(known.factor == .push && fixture.rig.pushes.sent.last?.challenge == known.challenge)
        fixture.rig.time.advance(by: Policy.limitWindow - .seconds(1))
        let later = try await fixture.ask(known: true)
        fixture.rig.time.advance(by: .seconds(2))
        var others: [OpenedChallenge] = []
        for _ in 0..<20 { others.append(try await fixture.ask(known: false)) }
        // They are open one at a time beside the known login. The phone gets no push for them and does not show
        // them.
        #expect(others.allSatisfy { $0.factor == .pull && $0.number != nil })
        #expect(fixture.rig.pushes.sent.last?.challenge == later.challenge)
        #expect(try await fixture.reported(later).result == .wait)
        #expect(try await fixture.reported(others[18]).reason == .superseded)
        #expect(try await fixture.shown() == [later.challenge])
        #expect(try await fixture.approve(later) == .success)
        #expect(try await fixture.reported(later).result == .success)
        #expect(try await fixture.shown() == [others[19].challenge])
    }

    @Test(arguments: StoreKind.all) func knownAndOtherBrowsersHaveSeparateLimits(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, ["login-limit": "3", "push-limit": "2"])
        for known in [true, false] {
            var factors: [Factor?] = []
            // An open known login would keep the others quiet.
            if !known { fixture.rig.time.advance(by: .seconds(1)) }
            for _ in 0..<3 {
                let asked = try await fixture.ask(known: known)
                factors.append(asked.factor)
                _ = try await fixture.rig.on { [shop = fixture.shop] relay in
                    try await relay.cancel(asked.challenge, by: shop)
                }
            }
            #expect(factors == [.push, .push, .pull])
            #expect(await refusal { try await fixture.ask(known: known) } != nil)
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM challenge WHERE known = 1") == 3)
    }

    @Test(arguments: StoreKind.all) func knownLoginSupersedesOthers(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        var before: [OpenedChallenge] = []
        for known in [true, false, true] { before.append(try await fixture.ask(known: known)) }
        #expect(try await fixture.reported(before[0]).reason == .superseded)
        #expect(try await fixture.reported(before[1]).reason == .superseded)
        #expect(try await fixture.reported(before[2]).result == .wait)
    }

    /// Concurrent logins over all relays: neither limit is exceeded, and one login of each kind is open.
    @Test(arguments: StoreKind.all) func concurrentKnownAndOtherLoginsAreCountedExactly(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, ["login-limit": "6", "push-limit": "2"])
        let outcomes = await withTaskGroup(of: (Bool, Bool).self) { group in
            for number in 0..<40 {
                let known = number % 4 == 0
                group.addTask { (known, await refusal { try await fixture.ask(known: known) } == nil) }
            }
            return await group.reduce(into: [(Bool, Bool)]()) { $0.append($1) }
        }
        for known in [true, false] {
            #expect(outcomes.count { $0 == (known, true) } == 6)
            let open = "SELECT count(*) FROM challenge WHERE decided_at IS NULL AND known = \(known ? 1 : 0)"
            #expect(try fixture.rig.count(open) <= 1)
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM challenge WHERE decided_at IS NULL AND known = 1") == 1)
        #expect(fixture.rig.pushes.sent.count <= 4)
    }

    /// Wrong numbers and codes count for the user, whichever browser they come from.
    @Test(arguments: StoreKind.all) func knownBrowserDoesNotChangeFailureCounts(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["guesses": "4"])
        try fixture.give(.totp)
        for round in 0..<4 {
            fixture.rig.time.advance(by: .seconds(500))
            let asked = try await fixture.rig.on { [ada = fixture.ada, shop = fixture.shop] relay in
                try await relay.login(
                    LoginRequest(subject: .token(ada), isKnown: round % 2 == 0), by: shop,
                    as: relay.operations.new())
            }
            #expect(try await fixture.handIn(CodeLoginFixture.wrong, asked).result == .wait)
            #expect(try fixture.budget == Int64(round + 1))
        }
        #expect(try fixture.areCodesLocked)
    }

    /// An attacker's login requests do not prevent the owner from unlocking codes in the known browser.
    @Test(arguments: StoreKind.all) func floodDoesNotPreventUnlockingCodes(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, policies: ["guesses": "1", "login-limit": "2"])
        try fixture.give(.totp)
        let phone = try #require(fixture.phone)
        _ = try await fixture.handIn(CodeLoginFixture.wrong, try await fixture.login())
        _ = try await fixture.login()
        guard case .limited = await refusal({ try await fixture.login() }) else { throw RigFailure("not limited") }
        let unlock: @Sendable (ChallengeID?, Bool) async throws -> Void = { [shop = fixture.shop, rig = fixture.rig] in
            let (approval, known) = ($0, $1)
            try await rig.on { relay in
                try await relay.unlock(
                    username: "ada", approval: approval, isKnown: known, by: shop, as: relay.operations.new())
            }
        }
        guard case .limited = await refusal({ try await unlock(nil, false) }) else { throw RigFailure("asked") }
        guard case .approvalRequired(let approval, let number) = await refusal({ try await unlock(nil, true) }) else {
            throw RigFailure("not asked")
        }
        #expect(try await fixture.rig.decide(.approve, approval, number: number, by: phone) == .success)
        try await unlock(approval, true)
        #expect(try !fixture.areCodesLocked)
    }

    /// The deletion of a user ends both logins. Each end is audited, logged and counted once, and wakes the requests
    /// that wait for it. A login that has ended before is not reported again.
    @Test(arguments: StoreKind.all, [false, true])
    func deletingAUserReportsKnownAndOtherLogins(kind: StoreKind, isNewestCancelled: Bool) async throws {
        let fixture = try await Fixture(kind)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let (known, other) = (try await fixture.ask(known: true), try await fixture.ask(known: false))
        if isNewestCancelled { try await rig.on { relay in try await relay.cancel(other.challenge, by: shop) } }
        let series = "twoefay_challenges_ended_total{result=\"failure\",reason=\"cancelled\",proof=\"none\"}"
        let before = try #require(rig.registry.number(series))
        _ = rig.sink.drain()
        let ended = isNewestCancelled ? [known] : [known, other]
        let tickets = ended.map { rig.relay.heldRequests.ticket(for: .challenge($0.challenge)) }

        try await rig.on { relay in try await relay.forget(username: "ada", by: shop) }

        #expect(tickets.allSatisfy { $0.hasHappened })
        #expect(rig.registry.number(series) == before + Double(ended.count))
        let lines = rig.sink.drain().filter { $0.contains("event=challenge.ended") }
        #expect(lines.count == ended.count)
        for asked in ended {
            #expect(lines.count { $0.contains("\(asked.challenge)") && $0.contains("reason=cancelled") } == 1)
            let audits = """
                SELECT count(*) FROM audit WHERE event IN ('challenge.ended', 'user.forgotten')
                AND challenge_id = x'\(asked.challenge)'
                """
            #expect(try rig.count(audits) == 1)
        }
    }
}
