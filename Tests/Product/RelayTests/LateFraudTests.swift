import Domain
import Log
import Relay
import TestSupport
import Testing
import World

/// Fraud reports after the end of a login. They count, because an attacker could otherwise end each login in time.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LateFraudTests {
    private let frozen = "SELECT count(*) FROM user WHERE state = 'frozen' AND username = 'ada'"

    private func report(
        _ asked: OpenedChallenge, by phone: RelayRig.BoundPhone, _ fixture: TwoWebsitesFixture,
        result: String = "failure"
    )
        async throws
    {
        await #expect(throws: Refusal.alreadyDecided(result: result)) {
            try await fixture.rig.decide(.fraud, asked.challenge, by: phone)
        }
    }

    @Test(arguments: StoreKind.all) func fraudReportOfASupersededLoginFreezesTheUser(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        try rig.execute("UPDATE website SET webhook_url = 'https://shop.example.com/hook' WHERE name = 'shop'")
        try rig.execute("UPDATE user SET email = 'ada@example.com' WHERE username = 'ada'")
        let first = try await fixture.ask()
        let second = try await fixture.ask()
        await rig.settled()
        let ticket = rig.relay.heldRequests.ticket(for: .challenge(second.challenge))
        _ = rig.sink.drain()
        try await report(first, by: fixture.first, fixture)
        #expect(try rig.count(frozen) == 1)
        // The login keeps its end; the open one ends.
        let reported = try await fixture.reported(first)
        #expect(reported.reason == .superseded && reported.receipt == nil)
        #expect(try await fixture.reported(second).reason == .frozen)
        #expect(rig.relay.heldRequests.count == 0)
        ticket.cancel()
        let lines = rig.sink.drain()
        #expect(lines.contains { $0.contains("level=warning event=user.frozen") && $0.contains("\(first.challenge)") })
        #expect(lines.contains { $0.contains("event=challenge.ended") && $0.contains("\(second.challenge)") })
        #expect(
            try rig.count(
                """
                SELECT count(*) FROM audit WHERE event = 'user.frozen' AND proof = 'signed'
                AND device_id = x'\(fixture.first.credential.id)' AND challenge_id = x'\(first.challenge)'
                """) == 1)
        for kind in ["webhook", "mail"] {
            let sql = "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'user.frozen'"
            #expect(try rig.count(sql) == 1, "\(kind)")
        }
        let entries = "SELECT count(*) FROM outbox WHERE challenge_id IS NOT NULL AND kind <> 'webhook'"
        #expect(try rig.count(entries) == 0)
    }

    @Test(arguments: StoreKind.all) func fraudReportFreezesOnce(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let first = try await fixture.ask()
        let second = try await fixture.ask()
        try await report(first, by: fixture.first, fixture)
        // The user is already frozen. The report still counts, and both reports are used up.
        try await report(second, by: fixture.first, fixture)
        try await fixture.unlock()
        try await report(first, by: fixture.first, fixture)
        try await report(second, by: fixture.first, fixture)
        #expect(try fixture.rig.count(frozen) == 0)
        // A report from another phone is a separate report.
        try await report(first, by: fixture.second, fixture)
        #expect(try fixture.rig.count(frozen) == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'user.frozen'") == 2)
    }

    @Test(arguments: StoreKind.all) func reportThatEndedTheLoginHasNoLaterEffect(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        #expect(try await fixture.rig.decide(.fraud, asked.challenge, by: fixture.first) == .failure)
        #expect(try fixture.rig.count(frozen) == 1)
        try await fixture.unlock()
        try await report(asked, by: fixture.first, fixture)
        #expect(try fixture.rig.count(frozen) == 0)
    }

    /// An approved login, an expired one: any end can be reported while it can be read.
    @Test(arguments: StoreKind.all) func endedLoginCanBeReportedForADay(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let approved = try await fixture.ask()
        #expect(try await rig.decide(.approve, approved.challenge, number: "47", by: fixture.second) == .success)
        try await report(approved, by: fixture.first, fixture, result: "success")
        #expect(try rig.count(frozen) == 1)
        #expect(try await fixture.reported(approved).result == .success)
        try await fixture.unlock()

        let expired = try await fixture.ask()
        rig.time.advance(by: .seconds(300 + 24 * 3600) - .milliseconds(1))
        try await report(expired, by: fixture.first, fixture)
        #expect(try rig.count(frozen) == 1)
        try await fixture.unlock()
        rig.time.advance(by: .milliseconds(1))
        try await report(expired, by: fixture.second, fixture)
        #expect(try rig.count(frozen) == 0)
    }

    @Test(arguments: StoreKind.all) func onlyAValidReportByAnActivePhoneFreezes(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let first = try await fixture.ask()
        let second = try await fixture.ask()
        let elsewhere = try await rig.signed(.fraud, second.challenge, by: fixture.first)
        let unsigned = PhoneAnswer(approves: false)
        let approval = try await rig.signed(.approve, first.challenge, number: "47", by: fixture.first)
        let denial = try await rig.signed(.deny, first.challenge, by: fixture.first)
        for answer in [
            PhoneAnswer(approves: false, signed: elsewhere), unsigned, PhoneAnswer(approves: true, signed: approval),
            PhoneAnswer(approves: false, signed: denial), PhoneAnswer(approves: false, signed: "yes"),
        ] {
            await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
                try await rig.post(answer, first.challenge, by: fixture.first)
            }
        }
        #expect(try rig.count(frozen) == 0)
        // The phone was suspended after it was looked up.
        let report = PhoneAnswer(
            approves: false, signed: try await rig.signed(.fraud, first.challenge, by: fixture.first))
        try rig.execute("UPDATE device SET state = 'suspended' WHERE id = x'\(fixture.first.credential.id)'")
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await rig.on { relay in try await relay.answer(first.challenge, report, by: fixture.first.credential) }
        }
        #expect(try rig.count(frozen) == 0)
    }

    /// A person who tricked the user into an approval must not be able to use it after the unlock.
    @Test(arguments: StoreKind.all) func lateFraudVoidsEarlierApprovals(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let approved = try await fixture.ask()
        #expect(try await rig.decide(.approve, approved.challenge, number: "47", by: fixture.second) == .success)
        _ = try await rig.on { relay in
            try await relay.activate(username: "ada", approval: nil, by: shop, as: relay.operations.new())
        }
        try rig.execute("UPDATE challenge SET approves = x'01' WHERE id = x'\(approved.challenge)'")
        try rig.execute("UPDATE device SET state = 'waiting' WHERE id = x'\(fixture.second.credential.id)'")
        try rig.execute("UPDATE activation SET approval = 'user' WHERE used_at IS NULL")
        let left = [
            "SELECT count(*) FROM challenge WHERE approves IS NOT NULL AND used_by IS NULL",
            "SELECT count(*) FROM device WHERE state = 'waiting'",
            "SELECT count(*) FROM activation WHERE approval = 'user' AND used_at IS NULL",
        ]
        for query in left { #expect(try rig.count(query) == 1) }
        try await report(approved, by: fixture.first, fixture, result: "success")
        #expect(try rig.count(frozen) == 1)
        for query in left { #expect(try rig.count(query) == 0) }
    }
}
