import Domain
import Log
import Relay
import TestSupport
import Testing
import World

/// However much a phone sends that is refused, the store has little of it to write: others want to be answered too.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RefusalBudgetTests {
    private func post(
        _ text: String, _ asked: OpenedChallenge, by phone: RelayRig.BoundPhone, _ cast: TwoWebsitesFixture
    ) async {
        await #expect(throws: Refusal.self) {
            try await cast.rig.post(PhoneAnswer(approves: true, signed: text), asked.challenge, by: phone)
        }
    }

    private func written(_ cast: TwoWebsitesFixture) throws -> Int64 {
        try cast.rig.count("SELECT count(*) FROM audit WHERE event = 'decision.refused'")
    }

    @Test(arguments: StoreKind.all) func refusedDecisionsPerPhoneAreLimitedInTheAudit(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        // Each about another challenge, so that none is a repetition.
        for _ in 0..<40 { await post("yes", try await cast.ask(), by: cast.first, cast) }
        #expect(try written(cast) == 30)
        #expect(cast.rig.sink.drain().count { $0.contains("event=decision.refused") } == 40)
        // Another phone has its own.
        let asked = try await cast.ask()
        await post("yes", asked, by: cast.second, cast)
        #expect(try written(cast) == 31)
        cast.rig.time.advance(by: .seconds(60))
        await post("yes", asked, by: cast.first, cast)
        #expect(try written(cast) == 32)
        #expect(try await cast.rig.decide(.approve, asked.challenge, number: "47", by: cast.first) == .success)
    }

    /// A flood of the same leaves room for what is not the same.
    @Test(arguments: StoreKind.all) func repeatedRefusalsDoNotHideNewOnes(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        for _ in 0..<100 { await post("yes", asked, by: cast.first, cast) }
        #expect(try written(cast) == 1)
        await post(String(repeating: "A", count: 10_000), asked, by: cast.first, cast)
        #expect(try written(cast) == 2)
    }
}
