import DeliveryOutcomes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Announcements of recoveries that the mail server does not accept, or accepts late.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryAnnouncementTests {
    private static let hour = Duration.seconds(3600)
    private static let refused = DeliveryOutcome.unregistered(since: nil, reason: "550 5.1.1 no such user")

    private func answer(_ fixture: RecoveryFixture, _ announcement: DeliveryOutcome) {
        fixture.rig.mails.answerOtherwise { mail in mail.cancelLink == nil ? .accepted(by: nil) : announcement }
    }

    /// Returns the announcement that the mail server has refused.
    private func dead(_ fixture: RecoveryFixture) async throws -> OutboxEntryID {
        var wanted = OutboxAdmin.Filter()
        wanted.onlyDead = true
        let (store, query) = (fixture.rig.store, OutboxAdmin.list(wanted))
        let letters = try await fixture.rig.on { _ in try await store.run(query) }
        guard letters.count == 1, letters[0].event == "recovery.waiting" else {
            throw RigFailure("dead letters: \(letters)")
        }
        return letters[0].id
    }

    private func run(_ fixture: RecoveryFixture, _ query: @Sendable @escaping (Domain.Operation) -> Query<Bool>)
        async throws
        -> Bool
    {
        let store = fixture.rig.store
        return try await fixture.rig.on { relay in try await store.run(query(relay.operations.new())) }
    }

    private func replay(_ fixture: RecoveryFixture) async throws {
        let (id, now) = (try await dead(fixture), fixture.rig.time.now())
        #expect(try await run(fixture) { OutboxAdmin.replay(id, at: now, as: $0) })
        try await fixture.rig.round(after: .zero)
    }

    @Test(arguments: StoreKind.all) func replayedAnnouncementBeginsTheWait(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        answer(fixture, Self.refused)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        let refused = try fixture.cancelToken()
        fixture.rig.time.advance(by: Self.hour * 48)
        answer(fixture, .accepted(by: nil))
        try await replay(fixture)
        #expect(try fixture.cancelToken() == refused)
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL") == 0)
        #expect(try fixture.rig.count("SELECT count(*) FROM operation_secret") == 0)
        let announced = try await fixture.state(handle).recovery.life
        #expect(announced.announcedAt == fixture.rig.time.now())
        #expect(announced.readyAt == fixture.rig.time.now() + Self.hour * 24)
        fixture.rig.time.advance(by: Self.hour * 24)
        _ = try await fixture.finish(handle)
    }

    /// A mail about a recovery that is over would tell its receiver to stop it.
    @Test(arguments: StoreKind.all) func replayRevivesNoExpiredRecovery(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        answer(fixture, Self.refused)
        let handle = try await fixture.opened()
        let expiry = try await fixture.proved(handle).recovery.life.expiresAt
        fixture.rig.time.advance(by: expiry - fixture.rig.time.now())
        answer(fixture, .accepted(by: nil))
        let sent = fixture.rig.mails.sent.count
        try await replay(fixture)
        #expect(fixture.rig.mails.sent.count == sent)
        #expect(try await fixture.state(handle).phase == .expired)
        #expect(
            try fixture.rig.count("SELECT count(*) FROM outbox WHERE event = 'recovery.waiting' AND kind = 'mail'") == 0
        )
    }

    /// A mail server that breaks off after the end of each mail has not confirmed any.
    @Test(arguments: StoreKind.all) func ambiguousAttemptsAreNoAcceptance(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        answer(fixture, .ambiguous("broken off"))
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        for _ in 0..<6 { try await fixture.rig.round(after: Self.hour * 2) }
        #expect(fixture.rig.mails.sent.count { $0.cancelLink != nil } > 2)
        #expect(try await fixture.state(handle).recovery.life.announcedAt == nil)
        answer(fixture, .accepted(by: nil))
        try await fixture.rig.round(after: Self.hour * 2)
        #expect(try await fixture.state(handle).recovery.life.announcedAt == fixture.rig.time.now())
    }

    @Test(arguments: StoreKind.all) func droppedAnnouncementLeavesNoSecret(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        answer(fixture, Self.refused)
        _ = try await fixture.proved(try await fixture.opened())
        let (id, now) = (try await dead(fixture), fixture.rig.time.now())
        #expect(try fixture.rig.count("SELECT count(*) FROM operation_secret") == 1)
        #expect(try await run(fixture) { OutboxAdmin.drop(id, at: now, as: $0) })
        #expect(try fixture.rig.count("SELECT count(*) FROM operation_secret") == 0)
    }
}
