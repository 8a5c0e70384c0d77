import Domain
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

/// Wrong numbers, which delay a phone and then lock its user, and fraud reports, which freeze the user. Both last
/// until they are lifted.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LockTests {
    /// Opens a challenge when the phone may approve again, and answers it with the wrong number.
    private func fail(_ fixture: TwoWebsitesFixture, by phone: RelayRig.BoundPhone, on relay: Relay? = nil) async throws
    {
        fixture.rig.time.advance(by: .seconds(500))
        let asked = try await fixture.ask()
        let signed = try await fixture.rig.signed(.approve, asked.challenge, number: "11", by: phone)
        let answer = PhoneAnswer(approves: true, signed: signed)
        let relay = relay ?? fixture.rig.relay
        let result = try await fixture.rig.on { _ in
            let known = try await relay.device(phone.credential.id, key: phone.credential.key, isCertified: true)
            return try await relay.answer(asked.challenge, answer, by: known)
        }
        #expect(result == .failure)
        #expect(try await fixture.reported(asked).reason == .wrongNumber)
    }

    @Test(arguments: StoreKind.all) func onlySignedWrongNumbersCountAndDelayTheNextApproval(
        kind: StoreKind
    ) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        try await fail(fixture, by: fixture.first)
        #expect(try rig.count("SELECT failures FROM device WHERE id = x'\(fixture.first.credential.id)'") == 1)
        #expect(try rig.count("SELECT sum(failures) FROM device") == 1)

        rig.time.advance(by: .milliseconds(4_999))
        let asked = try await fixture.ask()
        await rig.settled()
        let untouched = try await fixture.state(asked)
        await #expect(throws: Refusal.limited(retryAfter: .milliseconds(1))) {
            try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        #expect(try fixture.refusals(.limited, by: fixture.first, about: asked.challenge) == 1)
        #expect(fixture.counted(.limited) == 1)
        #expect(try await fixture.state(asked) == untouched)
        // The phone has the counter, not the user.
        #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.second) == .success)
        #expect(try rig.count("SELECT sum(failures) FROM device") == 1)

        rig.time.advance(by: .milliseconds(1))
        let next = try await fixture.ask()
        #expect(try await rig.decide(.approve, next.challenge, number: "47", by: fixture.first) == .success)
        #expect(try rig.count("SELECT sum(failures) FROM device") == 0)
        #expect(try rig.count("SELECT count(*) FROM device WHERE failed_at IS NOT NULL") == 0)
    }

    @Test(arguments: StoreKind.all) func denialIsAcceptedDuringTheDelay(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        for (decision, reason) in [(Decision.deny, Reason.denied), (.fraud, .fraud)] {
            try await fail(fixture, by: fixture.first)
            let asked = try await fixture.ask()
            #expect(try await fixture.rig.decide(decision, asked.challenge, by: fixture.first) == .failure)
            #expect(try await fixture.reported(asked).reason == reason)
        }
        // A denial does not count as a right number.
        #expect(try fixture.rig.count("SELECT sum(failures) FROM device") == 2)
    }

    @Test func delayGrowsWithEachWrongNumber() async throws {
        let fixture = try await TwoWebsitesFixture(.memory)
        for failures in 1...4 {
            try await fail(fixture, by: fixture.first)
            let asked = try await fixture.ask()
            await #expect(throws: Refusal.limited(retryAfter: .seconds(5 * failures))) {
                try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
            }
        }
    }

    /// An approval without a number proves only the possession of the phone, not that the user reads the right
    /// screen.
    @Test(arguments: StoreKind.all) func approvalWithoutNumberKeepsFailures(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["number-below": "10 EUR"])
        try await fail(fixture, by: fixture.first)
        fixture.rig.time.advance(by: .seconds(500))
        let small = try await fixture.ask(number: nil, amount: "5.00 EUR")
        #expect(small.number == nil)
        #expect(try await fixture.rig.decide(.approve, small.challenge, by: fixture.first) == .success)
        #expect(try fixture.rig.count("SELECT sum(failures) FROM device") == 1)
        let large = try await fixture.ask()
        #expect(try await fixture.rig.decide(.approve, large.challenge, number: "47", by: fixture.first) == .success)
        #expect(try fixture.rig.count("SELECT sum(failures) FROM device") == 0)
    }

    // MARK: Locks

    /// Wrong numbers at any of several relays, with a restart between them.
    @Test(arguments: StoreKind.all) func wrongNumbersLockTheUser(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["guesses": "4"])
        let rig = fixture.rig
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example.com/hook' WHERE name = 'shop'")
        try rig.execute("UPDATE user SET email = 'ada@example.com' WHERE username = 'ada'")
        let (other, restarted) = (try rig.another(), try rig.another())
        for relay in [rig.relay, other, restarted] { try await fail(fixture, by: fixture.first, on: relay) }
        // Another phone has a separate count.
        try await fail(fixture, by: fixture.second)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'locked'") == 0)
        _ = rig.sink.drain()
        try await fail(fixture, by: fixture.first, on: other)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'locked' AND username = 'ada'") == 1)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state <> 'active'") == 1)
        let warned = rig.sink.drain().filter { $0.contains("level=warning event=user.locked") }
        #expect(warned.count == 1)
        #expect(
            try rig.count(
                """
                SELECT count(*) FROM audit WHERE event = 'user.locked' AND proof = 'signed'
                AND device_id = x'\(fixture.first.credential.id)'
                """) == 1)
        for kind in ["webhook", "mail"] {
            let sql = "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'user.locked'"
            #expect(try rig.count(sql) == 1)
        }
    }

    @Test(arguments: StoreKind.all) func websiteUnlocksTheUser(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["guesses": "1", "further-factors": "proved"])
        let rig = fixture.rig
        try await fail(fixture, by: fixture.first)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'locked'") == 1)
        let unlock: @Sendable (Relay) async throws -> Void = { relay in
            try await relay.unlock(username: "ada", by: fixture.shop, as: relay.operations.new())
        }
        try await rig.on(unlock)
        // A repetition has nothing to do.
        try await rig.on(unlock)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state <> 'active'") == 0)
        #expect(try rig.count("SELECT sum(failures) FROM device") == 0)
        let noted = "SELECT count(*) FROM audit WHERE event = 'user.unlocked' AND outcome = 'website'"
        #expect(try rig.count(noted) == 1)
        // At once, without a delay.
        let asked = try await fixture.ask()
        #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
        await #expect(throws: Refusal.notFound) {
            try await rig.on { relay in
                try await relay.unlock(username: "ada", by: fixture.bank, as: relay.operations.new())
            }
        }
    }

    /// A repeated unlock does not lift a later lock.
    @Test(arguments: StoreKind.all) func repeatedUnlockLiftsNothingElse(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["guesses": "1"])
        let rig = fixture.rig
        try await fail(fixture, by: fixture.first)
        let operation = rig.relay.operations.new()
        let unlock: @Sendable () async throws -> Void = {
            _ = try await rig.on { _ in
                try await rig.store.unlock(
                    fixture.first.credential.user, from: [.locked], by: .website, at: rig.time.now(), as: operation)
            }
        }
        try await unlock()
        #expect(try rig.count("SELECT count(*) FROM user WHERE state <> 'active'") == 0)
        let asked = try await fixture.ask()
        #expect(try await rig.decide(.fraud, asked.challenge, by: fixture.second) == .failure)
        try rig.execute("UPDATE device SET failures = 3 WHERE id = x'\(fixture.first.credential.id)'")
        try await unlock()
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 1)
        #expect(try rig.count("SELECT sum(failures) FROM device") == 3)
    }

    // MARK: Fraud

    @Test(arguments: StoreKind.all) func fraudFreezesTheUser(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["further-factors": "proved"])
        let rig = fixture.rig
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example.com/hook' WHERE name = 'shop'")
        try rig.execute("UPDATE user SET email = 'ada@example.com' WHERE username = 'ada'")
        let asked = try await fixture.ask()
        _ = rig.sink.drain()
        #expect(try await rig.decide(.fraud, asked.challenge, by: fixture.second) == .failure)
        let reported = try await fixture.reported(asked)
        #expect(reported.reason == .fraud && reported.proof == .signed && reported.receipt != nil)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'frozen' AND username = 'ada'") == 1)
        #expect(rig.sink.drain().contains { $0.contains("level=warning event=user.frozen") })
        #expect(
            try rig.count("SELECT count(*) FROM audit WHERE event = 'user.frozen' AND proof = 'signed'") == 1)
        for kind in ["webhook", "mail"] {
            #expect(
                try rig.count(
                    """
                    SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'user.frozen'
                    AND user_id = x'\(fixture.second.credential.user)' AND device_id = x'\(fixture.second.credential.id)'
                    """) == 1, "\(kind)")
        }
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE event = 'user.frozen'") == 2)
        // The website cannot lift the freeze; an operator can.
        await #expect(throws: Refusal.self) {
            try await rig.on { relay in
                try await relay.unlock(username: "ada", by: fixture.shop, as: relay.operations.new())
            }
        }
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 1)
        try await fixture.unlock()
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 0)
        let noted = "SELECT count(*) FROM audit WHERE event = 'user.unlocked' AND outcome = 'operator'"
        #expect(try rig.count(noted) == 1)
    }

    @Test(arguments: StoreKind.all) func freezeEndsOpenChallenges(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let first = try await fixture.ask()
        await rig.settled()
        // A second open challenge, as an earlier version of the relay would have allowed it.
        try rig.execute(
            """
            INSERT INTO challenge (id, website_id, user_id, state, policy, context, nonce, asked_at, expires_at,
            operation) SELECT x'00000000000000000000000000000007', website_id, user_id, 'sent', policy, context, nonce,
            asked_at, expires_at, operation FROM challenge
            """)
        let seven = try #require(ChallengeID([UInt8](repeating: 0, count: 15) + [7]))
        let ticket = rig.relay.heldRequests.ticket(for: .challenge(seven))
        #expect(try await rig.decide(.fraud, first.challenge, by: fixture.first) == .failure)
        // The request that is held for the other challenge is woken.
        await withCheckedContinuation { continuation in ticket.arm { continuation.resume() } }
        let other = try await rig.on { relay in try await relay.result(seven, to: fixture.shop) }
        #expect(other.result == .failure && other.reason == .frozen && other.proof == nil)
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind IN ('push', 'expiry')") == 0)
    }

    @Test(arguments: StoreKind.all) func phoneOfAFrozenUserCannotApprove(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let asked = try await fixture.ask()
        try rig.execute("UPDATE user SET state = 'frozen' WHERE username = 'ada'")
        await #expect(throws: Refusal.unauthenticated) {
            try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        #expect(try await fixture.reported(asked).result == .wait)
        #expect(try fixture.refusals(.revoked, by: fixture.first, about: asked.challenge) == 1)
        // But the phone may deny.
        #expect(try await rig.decide(.deny, asked.challenge, by: fixture.first) == .failure)
    }

    /// A lock or freeze creates one event.
    @Test(arguments: StoreKind.all, [UserState.locked, .frozen])
    func operatorTakeoverOfALockCreatesNoEvent(kind: StoreKind, state: UserState) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        func audits(_ event: String) throws -> Int64 {
            try rig.count("SELECT count(*) FROM audit WHERE event = '\(event)' AND outcome = 'operator'")
        }
        let announced = "SELECT count(*) FROM outbox WHERE event = 'user.locked' AND kind = 'webhook'"
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example/hook'")
        try rig.execute("UPDATE user SET state = '\(state.rawValue)', stopped_by = 'phone' WHERE username = 'ada'")
        #expect(try await fixture.lock())
        #expect(try await !fixture.lock())
        #expect(try rig.count(announced) == 0)
        #expect(try audits("user.locked") == 0)
        #expect(try audits("user.taken") == 1)
        try await fixture.unlock()
        #expect(try await fixture.lock())
        #expect(try rig.count(announced) == 1)
        #expect(try audits("user.locked") == 1)
        #expect(try audits("user.taken") == 1)
    }

    @Test(arguments: StoreKind.all) func operatorLocksTheUser(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let asked = try await fixture.ask()
        await rig.settled()
        #expect(try await fixture.lock())
        #expect(try await !fixture.lock())
        #expect(try await fixture.reported(asked).reason == .locked)
        #expect(
            try rig.count("SELECT count(*) FROM audit WHERE event = 'user.locked' AND outcome = 'operator'") == 1)
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        try await fixture.unlock()
    }
}
