import Domain
import Log
import Relay
import TestSupport
import Testing
import World

/// The limit on the audit rows for refused answers of one phone, so that a flood does not delay other requests.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RefusalBudgetTests {
    private func post(
        _ text: String, _ asked: OpenedChallenge, by phone: RelayRig.BoundPhone, _ fixture: TwoWebsitesFixture
    ) async {
        await #expect(throws: Refusal.self) {
            try await fixture.rig.post(PhoneAnswer(approves: true, signed: text), asked.challenge, by: phone)
        }
    }

    private func written(_ fixture: TwoWebsitesFixture) throws -> Int64 {
        try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'decision.refused'")
    }

    @Test(arguments: StoreKind.all) func refusedDecisionsPerPhoneAreLimitedInTheAudit(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        // Each about another challenge, so that none is a repetition.
        for _ in 0..<40 { await post("yes", try await fixture.ask(), by: fixture.first, fixture) }
        #expect(try written(fixture) == 30)
        #expect(fixture.rig.sink.drain().count { $0.contains("event=decision.refused") } == 40)
        // Another phone has a separate limit.
        let asked = try await fixture.ask()
        await post("yes", asked, by: fixture.second, fixture)
        #expect(try written(fixture) == 31)
        fixture.rig.time.advance(by: .seconds(60))
        await post("yes", asked, by: fixture.first, fixture)
        #expect(try written(fixture) == 32)
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
    }

    /// A flood of equal answers leaves room for different ones.
    @Test(arguments: StoreKind.all) func repeatedRefusalsDoNotHideNewOnes(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        for _ in 0..<100 { await post("yes", asked, by: fixture.first, fixture) }
        #expect(try written(fixture) == 1)
        await post(String(repeating: "A", count: 10_000), asked, by: fixture.first, fixture)
        #expect(try written(fixture) == 2)
    }
}
