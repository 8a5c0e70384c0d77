import Domain
import Log
import Relay
import TestSupport
import Testing
import World

/// "This was not me" counts even where the login has its end already: whoever can ask could else end each of them in time.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LateFraudTests {
    private let frozen = "SELECT count(*) FROM user WHERE state = 'frozen' AND username = 'ada'"

    private func report(
        _ asked: OpenedChallenge, by phone: RelayRig.BoundPhone, _ cast: TwoWebsitesFixture, result: String = "failure"
    )
        async throws
    {
        await #expect(throws: Refusal.alreadyDecided(result: result)) {
            try await cast.rig.decide(.fraud, asked.challenge, by: phone)
        }
    }

    @Test(arguments: StoreKind.all) func fraudReportOfASupersededLoginFreezesTheUser(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let rig = cast.rig
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example.com/hook' WHERE name = 'shop'")
        try rig.execute("UPDATE user SET email = 'ada@example.com' WHERE username = 'ada'")
        let first = try await cast.ask()
        let second = try await cast.ask()
        await rig.settled()
        let ticket = rig.relay.heldRequests.ticket(for: .challenge(second.challenge))
        _ = rig.sink.drain()
        try await report(first, by: cast.first, cast)
        #expect(try rig.count(frozen) == 1)
        // It keeps its end; what was open ends.
        let told = try await cast.told(first)
        #expect(told.reason == .superseded && told.receipt == nil)
        #expect(try await cast.told(second).reason == .frozen)
        #expect(rig.relay.heldRequests.count == 0)
        ticket.cancel()
        let lines = rig.sink.drain()
        #expect(lines.contains { $0.contains("level=warning event=user.frozen") && $0.contains("\(first.challenge)") })
        #expect(lines.contains { $0.contains("event=challenge.ended") && $0.contains("\(second.challenge)") })
        #expect(
            try rig.count(
                """
                SELECT count(*) FROM audit WHERE event = 'user.frozen' AND proof = 'signed'
                AND device_id = x'\(cast.first.credential.id)' AND challenge_id = x'\(first.challenge)'
                """) == 1)
        for kind in ["webhook", "mail"] {
            let sql = "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'user.frozen'"
            #expect(try rig.count(sql) == 1, "\(kind)")
        }
        let errands = "SELECT count(*) FROM outbox WHERE challenge_id IS NOT NULL AND kind <> 'webhook'"
        #expect(try rig.count(errands) == 0)
    }

    @Test(arguments: StoreKind.all) func fraudReportFreezesOnce(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let first = try await cast.ask()
        let second = try await cast.ask()
        try await report(first, by: cast.first, cast)
        // The user is frozen already; this is a report all the same, and used with the other.
        try await report(second, by: cast.first, cast)
        try await cast.unlock()
        try await report(first, by: cast.first, cast)
        try await report(second, by: cast.first, cast)
        #expect(try cast.rig.count(frozen) == 0)
        // Another phone's is another report.
        try await report(first, by: cast.second, cast)
        #expect(try cast.rig.count(frozen) == 1)
        #expect(try cast.rig.count("SELECT count(*) FROM audit WHERE event = 'user.frozen'") == 2)
    }

    @Test(arguments: StoreKind.all) func reportThatEndedTheLoginHasNoLaterEffect(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        #expect(try await cast.rig.decide(.fraud, asked.challenge, by: cast.first) == .failure)
        #expect(try cast.rig.count(frozen) == 1)
        try await cast.unlock()
        try await report(asked, by: cast.first, cast)
        #expect(try cast.rig.count(frozen) == 0)
    }

    /// An approval, an expiry: whatever the end was, as long as it can be read.
    @Test(arguments: StoreKind.all) func endedLoginCanBeReportedForADay(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let rig = cast.rig
        let approved = try await cast.ask()
        #expect(try await rig.decide(.approve, approved.challenge, number: "47", by: cast.second) == .success)
        try await report(approved, by: cast.first, cast, result: "success")
        #expect(try rig.count(frozen) == 1)
        #expect(try await cast.told(approved).result == .success)
        try await cast.unlock()

        let expired = try await cast.ask()
        rig.time.advance(by: .seconds(300 + 24 * 3600) - .milliseconds(1))
        try await report(expired, by: cast.first, cast)
        #expect(try rig.count(frozen) == 1)
        try await cast.unlock()
        rig.time.advance(by: .milliseconds(1))
        try await report(expired, by: cast.second, cast)
        #expect(try rig.count(frozen) == 0)
    }

    @Test(arguments: StoreKind.all) func onlyAValidReportByAnActivePhoneFreezes(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let rig = cast.rig
        let first = try await cast.ask()
        let second = try await cast.ask()
        let elsewhere = try await rig.signed(.fraud, second.challenge, by: cast.first)
        let unsigned = PhoneAnswer(approves: false)
        let approval = try await rig.signed(.approve, first.challenge, number: "47", by: cast.first)
        let denial = try await rig.signed(.deny, first.challenge, by: cast.first)
        for answer in [
            PhoneAnswer(approves: false, signed: elsewhere), unsigned, PhoneAnswer(approves: true, signed: approval),
            PhoneAnswer(approves: false, signed: denial), PhoneAnswer(approves: false, signed: "yes"),
        ] {
            await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
                try await rig.post(answer, first.challenge, by: cast.first)
            }
        }
        #expect(try rig.count(frozen) == 0)
        // Suspended after it was looked up.
        let report = PhoneAnswer(
            approves: false, signed: try await rig.signed(.fraud, first.challenge, by: cast.first))
        try rig.execute("UPDATE device SET state = 'suspended' WHERE id = x'\(cast.first.credential.id)'")
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await rig.on { relay in try await relay.answer(first.challenge, report, by: cast.first.credential) }
        }
        #expect(try rig.count(frozen) == 0)
    }

    /// Who tricks somebody into an approval must not come back with it after the unlock.
    @Test(arguments: StoreKind.all) func lateFraudVoidsEarlierApprovals(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let (rig, shop) = (cast.rig, cast.shop)
        let approved = try await cast.ask()
        #expect(try await rig.decide(.approve, approved.challenge, number: "47", by: cast.second) == .success)
        _ = try await rig.on { relay in
            try await relay.activate(username: "ada", approval: nil, by: shop, as: relay.operations.new())
        }
        try rig.execute("UPDATE challenge SET approves = x'01' WHERE id = x'\(approved.challenge)'")
        try rig.execute("UPDATE device SET state = 'waiting' WHERE id = x'\(cast.second.credential.id)'")
        try rig.execute("UPDATE activation SET approval = 'user' WHERE used_at IS NULL")
        let left = [
            "SELECT count(*) FROM challenge WHERE approves IS NOT NULL AND used_by IS NULL",
            "SELECT count(*) FROM device WHERE state = 'waiting'",
            "SELECT count(*) FROM activation WHERE approval = 'user' AND used_at IS NULL",
        ]
        for query in left { #expect(try rig.count(query) == 1) }
        try await report(approved, by: cast.first, cast, result: "success")
        #expect(try rig.count(frozen) == 1)
        for query in left { #expect(try rig.count(query) == 0) }
    }
}
