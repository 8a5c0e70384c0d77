import Bytes
import Crypto
import DeliveryOutcomes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The announcements of recoveries.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryEndTests {
    private static let day = Duration.seconds(86_400)
    private static let hour = Duration.seconds(3600)

    /// The mail server accepts links, and no announcements.
    private func delayAnnouncements(_ fixture: RecoveryFixture) {
        fixture.rig.mails.answerOtherwise { mail in
            mail.cancelLink == nil ? .accepted(by: nil) : .retry(after: nil, reason: "down")
        }
    }

    private func acceptEverything(_ fixture: RecoveryFixture) {
        fixture.rig.mails.answerOtherwise { _ in .accepted(by: nil) }
    }

    private func announcements(_ fixture: RecoveryFixture) -> [Message] {
        fixture.rig.mails.sent.filter { $0.cancelLink != nil }
    }

    @Test(arguments: StoreKind.all) func announcementIsTriedAsLongAsTheWait(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false, ["recovery-wait": "48"])
        delayAnnouncements(fixture)
        _ = try await fixture.proved(try await fixture.opened())
        for _ in 0..<24 { try await fixture.rig.round(after: Self.hour * 2) }
        let attempts = announcements(fixture).count
        #expect(attempts >= 24)
        try await fixture.rig.round(after: Self.hour * 2)
        #expect(announcements(fixture).count > attempts)
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL") == 0)
    }

    /// The owner has the whole wait to stop it, also if the mail server was away.
    @Test(arguments: StoreKind.all) func waitBeginsWithTheFirstAcceptedAnnouncement(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let rig = fixture.rig
        delayAnnouncements(fixture)
        let handle = try await fixture.opened()
        let proved = try await fixture.proved(handle)
        for _ in 0..<13 { try await rig.round(after: Self.hour * 2) }
        let unannounced = try await fixture.state(handle)
        #expect(unannounced.phase == .waiting && unannounced.recovery.life.readyAt == proved.recovery.life.readyAt)
        #expect(await refusal { try await fixture.finish(handle) } != nil)
        acceptEverything(fixture)
        try await rig.round(after: Self.hour * 2)
        let ready = rig.time.now() + Self.day
        #expect(try await fixture.state(handle).recovery.life.readyAt == ready)
        guard case .recovery(.announcement(_, _, let named))? = announcements(fixture).last?.content else {
            throw RigFailure("no announcement")
        }
        #expect(named == ready)
        rig.time.advance(by: Self.day - .milliseconds(1))
        #expect(try await fixture.state(handle).phase == .waiting)
        #expect(await refusal { try await fixture.finish(handle) } != nil)
        rig.time.advance(by: .milliseconds(1))
        #expect(try await fixture.state(handle).phase == .ready)
        _ = try await fixture.finish(handle)
    }

    /// Whoever approves on a phone has seen the announcement.
    @Test(arguments: StoreKind.all) func approvalOnAPhoneNeedsNoMail(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        delayAnnouncements(fixture)
        let handle = try await fixture.opened()
        let asked = try #require(try await fixture.proved(handle).challenge)
        try await fixture.ada.decide(asked, .approve, by: try #require(fixture.phone))
        #expect(try await fixture.state(handle).phase == .ready)
        _ = try await fixture.finish(handle)
    }

    /// A delayed mail about one recovery does not tell the time and factor of another one.
    @Test(arguments: StoreKind.all) func announcementNamesItsOwnTimeAndFactor(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        _ = try await fixture.ada.addHOTP(Secret(RelayRig.secret))
        fixture.rig.mails.answer(.accepted(by: nil), .retry(after: .seconds(7200), reason: "busy"))
        let first = try await fixture.proved(try await fixture.opened()).recovery.life.readyAt
        fixture.rig.time.advance(by: Self.hour)
        _ = try await fixture.proved(try await fixture.opened(.hotp), by: 1)
        let cancel = try #require(announcements(fixture).first?.cancelLink)
        try await fixture.rig.round(after: Self.hour * 2)
        let repeated = try #require(announcements(fixture).last)
        #expect(repeated.cancelLink == cancel && announcements(fixture).count == 3)
        guard case .recovery(.announcement(_, let lost, let named)) = repeated.content else {
            throw RigFailure("no mail")
        }
        let announced = try #require(first)
        #expect(lost == .totp && named > announced && named == fixture.rig.time.now() + Self.day)
    }
}
