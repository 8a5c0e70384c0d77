import DeliveryOutcomes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The marks of challenges that phones have shown, from a relay's memory to the store.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SeenChallengeTests {
    private static let marked = "SELECT count(*) FROM step WHERE state = 'seen'"

    /// The website sees the mark before it is in the store. The round writes it, with the time at
    /// which the phone showed the challenge first.
    @Test(arguments: StoreKind.all) func markIsReportedAtOnceAndWrittenByTheRound(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        fixture.rig.time.advance(by: .seconds(1))
        let shownAt = fixture.rig.time.now()
        try await fixture.show(1)
        fixture.rig.time.advance(by: .seconds(1))
        try await fixture.show(1)
        #expect(try fixture.rig.count(Self.marked) == 0)
        let reported = try await fixture.reported(asked).steps
        #expect(reported.map(\.state) == [.seen] && reported.map(\.at) == [shownAt])
        try await fixture.rig.on { relay in await relay.processDueEntries() }
        #expect(try fixture.rig.count(Self.marked) == 1)
        #expect(try await fixture.rig.on { relay in relay.seen.parts.isEmpty })
        #expect(try await fixture.reported(asked).steps == reported)
    }

    @Test(arguments: StoreKind.all) func endedChallengeNeedsNoMark(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        try await fixture.show(1)
        try await fixture.rig.on { [shop = fixture.shop] relay in try await relay.cancel(asked.challenge, by: shop) }
        #expect(try await fixture.rig.on { relay in relay.seen.parts.isEmpty })
        #expect(try await fixture.reported(asked).steps.map(\.state) == [.skipped])
    }

    /// A phone that shows a challenge has no need of its push.
    @Test(arguments: StoreKind.all) func refusedPushDoesNotEndAShownStep(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let busy = DeliveryOutcome.retry(after: .seconds(2), reason: "busy")
        fixture.rig.pushes.answer(busy, busy)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        try await fixture.show(1)
        let gone = DeliveryOutcome.unregistered(since: nil, reason: "Unregistered")
        fixture.rig.pushes.answer(gone, gone)
        for sent in fixture.rig.pushes.sent {
            try await fixture.rig.on { relay in await relay.deliver(sent.again) }
        }
        #expect(fixture.rig.pushes.sent.count == 4)
        #expect(try await fixture.reported(asked).steps.map(\.state) == [.seen])
        #expect(try fixture.rig.count(Self.marked) == 1)
    }

    /// A phone polls after the round has written its marks, and before the next factor begins.
    @Test(arguments: StoreKind.all) func shownChallengeGetsNoFurtherFactor(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let phone = try #require(fixture.phone?.credential)
        let asked = try await fixture.login()
        fixture.rig.time.advance(by: .seconds(30))
        let shown = try await fixture.rig.on { relay in
            await relay.recordSeen()
            let pending = try await relay.pending(for: phone)
            await relay.advance(asked.challenge, because: .due)
            return pending.count
        }
        #expect(shown == 1)
        #expect(try fixture.rig.count(Self.marked) == 1)
        #expect(try await fixture.steps(asked) == "push seen")
    }

    @Test(arguments: StoreKind.all) func markThatCannotBeWrittenStays(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        _ = try await fixture.ask()
        await fixture.rig.settled()
        try await fixture.show(1)
        try fixture.rig.execute("ALTER TABLE step RENAME TO step_elsewhere")
        try await fixture.rig.on { relay in await relay.recordSeen() }
        try fixture.rig.execute("ALTER TABLE step_elsewhere RENAME TO step")
        #expect(try fixture.rig.count(Self.marked) == 0)
        try await fixture.rig.on { relay in await relay.recordSeen() }
        #expect(try fixture.rig.count(Self.marked) == 1)
    }
}

extension TwoWebsitesFixture {
    /// Asks for the challenges of Ada's first phone.
    fileprivate func show(_ count: Int) async throws {
        let pending = try await rig.on { [first] relay in try await relay.pending(for: first.credential) }
        #expect(pending.count == count)
    }
}
