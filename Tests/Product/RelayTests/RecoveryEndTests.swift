import Bytes
import Crypto
import DeliveryOutcomes
import Domain
import Log
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// The announcements of recoveries, and how recoveries end.
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

    @Test(arguments: StoreKind.all) func announcementOfACancelledRecoveryIsNotSent(kind: StoreKind) async throws {
        for way in ["website", "address", "continued"] {
            let fixture = try await RecoveryFixture(kind, hasPhone: false)
            delayAnnouncements(fixture)
            let handle = try await fixture.opened()
            let id = try await fixture.proved(handle).recovery.id
            let shop = fixture.shop
            switch way {
            case "website":
                try await fixture.rig.on { relay in
                    try await relay.cancelRecovery(id, ofUser: "ada", by: shop)
                }
            case "address": _ = try await fixture.ada.change { $0.addresses.updateValue(nil, forKey: .mail) }
            default: _ = try await fixture.proved(try await fixture.opened(), by: 1)
            }
            // The newer recovery has an announcement of its own.
            let left: Int64 = way == "continued" ? 1 : 0
            let waiting = "SELECT count(*) FROM outbox WHERE kind = 'mail' AND event = 'recovery.waiting'"
            #expect(try fixture.rig.count(waiting) == left, "\(way)")
            #expect(try fixture.rig.count("SELECT count(*) FROM operation_secret") == left, "\(way)")
        }
    }

    /// The owner sees that another link has taken the place of theirs.
    @Test(arguments: StoreKind.all) func continuedRecoveryIsReported(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let first = try await fixture.opened()
        _ = try await fixture.proved(first)
        let second = try await fixture.opened()
        #expect(try fixture.events("recovery.cancelled")[0] == 0)
        _ = try await fixture.proved(second, by: 1)
        #expect(try await fixture.state(first).phase == .cancelled)
        #expect(try fixture.events("recovery.cancelled")[0] == 1)
        let audited = "SELECT count(*) FROM AuditTrail WHERE event = 'recovery.cancelled' AND note = 'continued'"
        #expect(try fixture.rig.count(audited) == 1)
        #expect(
            fixture.rig.sink.lines.contains { $0.contains("event=recovery.cancelled ") && $0.contains("continued") })
    }

    /// A user who has lost two factors asks for two links while the mail server is busy.
    @Test(arguments: StoreKind.all) func everyLinkIsSent(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        fixture.rig.mails.answer(
            .retry(after: .seconds(5), reason: "busy"), .retry(after: .seconds(5), reason: "busy"))
        for factor in [Factor.totp, .push] { _ = try await fixture.start(factor) }
        let before = fixture.rig.mails.sent.count
        try await fixture.rig.round(after: .seconds(60))
        #expect(Set(fixture.rig.mails.sent.dropFirst(before).compactMap(\.recoveryLink)).count == 2)
    }

    /// The operator does not know which recovery is the thief's.
    @Test(arguments: StoreKind.all) func operatorCancelsAllOfTheFactor(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (rig, user) = (fixture.rig, try await fixture.id())
        let waiting = try await fixture.opened()
        _ = try await fixture.proved(waiting)
        let opened = try await fixture.opened()
        let phones = try await fixture.opened(.push)
        _ = try await fixture.start()
        let link = try fixture.token()
        let isCancelled = try await rig.on { relay in
            try await rig.store.run(
                Recoveries.cancelAll(
                    of: user, .totp, by: .operator, at: rig.time.now(), as: relay.operations.new()))
        }
        #expect(isCancelled)
        for handle in [waiting, opened] { #expect(try await fixture.state(handle).phase == .cancelled) }
        #expect(await refusal { try await fixture.open(link) } == .notFound)
        #expect(try await fixture.state(phones).phase == .opened)
        let audited = "SELECT count(*) FROM AuditTrail WHERE event = 'recovery.cancelled' AND note = 'operator'"
        #expect(try rig.count(audited) == 3)
        #expect(try fixture.events("recovery.cancelled") == [1, 1])
    }

    // MARK: Links

    /// A stranger uses up the links of the hour at the website's public page.
    @Test(arguments: StoreKind.all) func strangerDoesNotKeepTheHelpDeskFromMailing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        for _ in 0..<NewRecovery.most + 1 { _ = try await fixture.start() }
        for _ in 0..<NewRecovery.most {
            guard case .started = try await fixture.startedByOperator() else {
                Issue.record("the help desk is limited by others")
                return
            }
        }
        #expect(try await fixture.startedByOperator() == .limited)
    }

    /// A stranger asks for a link while the owner opens theirs.
    @Test(arguments: StoreKind.all) func strangerDoesNotMakeAFreshLinkVoid(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        _ = try await fixture.start()
        let owners = try fixture.token()
        _ = try await fixture.start()
        #expect(try fixture.token() != owners)
        _ = try await fixture.open(owners)
    }

    /// Whatever a stranger does, the mailbox has a valid link or gets one.
    @Test(arguments: StoreKind.all) func strangerDoesNotKeepTheOwnerFromALink(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        for _ in 0..<NewRecovery.most + 1 { _ = try await fixture.start() }
        _ = try await fixture.open(try fixture.token())
        fixture.rig.time.advance(by: RecoveryLife.linkLife)
        let mailed = fixture.rig.mails.sent.count { $0.recoveryLink != nil }
        _ = try await fixture.start()
        #expect(fixture.rig.mails.sent.count { $0.recoveryLink != nil } == mailed + 1)
        _ = try await fixture.start()
        #expect(fixture.rig.mails.sent.count { $0.recoveryLink != nil } == mailed + 1)
    }

    // MARK: Two lost factors

    /// A recovery of the phones does not make the guesses of their codes forgotten.
    @Test(arguments: StoreKind.all) func guessesStayCountedWhenPhonesAreReplaced(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let former = try #require(fixture.phone)
        let handle = try await fixture.opened(.push)
        _ = try await fixture.proved(handle)
        rig.time.advance(by: Self.day)
        let code = try await rig.on { relay in
            try await relay.recoverPhone(handle: handle, by: shop, as: relay.operations.new())
        }.code
        // The secret of the app is one that only the former phone has.
        try rig.execute("UPDATE factor SET device_id = x'\(former.id)', failures = 3 WHERE kind = 'totp'")
        try rig.execute("UPDATE user SET code_failures = 4, code_failures_kept = 0")
        _ = try await fixture.ada.bound(try TestPhone(pushToken: "new"), code)
        #expect(try rig.count("SELECT count(*) FROM factor WHERE kind = 'totp'") == 0)
        #expect(try rig.count("SELECT count(*) FROM user WHERE code_failures = 4 AND code_failures_kept = 3") == 1)
    }

    /// The app and the phone were on one device. Both recoveries were proved by recovery codes.
    @Test(arguments: StoreKind.all) func newPhoneSparesTheRecoveryOfTheApp(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let app = try await fixture.opened()
        _ = try await fixture.proved(app)
        let phones = try await fixture.opened(.push)
        _ = try await fixture.proved(phones, by: 1)
        fixture.rig.time.advance(by: Self.day)
        let setup = try await fixture.finish(app)
        try await fixture.replacePhone(phones)
        #expect(try await fixture.state(phones).phase == .done)
        #expect(try await fixture.state(app).phase == .ready)
        #expect(try fixture.events("recovery.cancelled")[0] == 0)
        #expect(try await fixture.ada.confirm(try fixture.ada.code(setup.secret)))
        #expect(try await fixture.state(app).phase == .done)
    }

    /// A recovery that a phone has proved or approved ends when a new phone replaces that phone.
    @Test(arguments: StoreKind.all, ["proof", "approval"])
    func newPhoneEndsWhatALostOneHasApproved(kind: StoreKind, way: String) async throws {
        let fixture = try await RecoveryFixture(kind)
        let lost = try #require(fixture.phone)
        let phones = try await fixture.opened(.push)
        _ = try await fixture.proved(phones)
        fixture.rig.time.advance(by: Self.day)
        let app = try await fixture.opened()
        if way == "proof" {
            let challenge = try await fixture.asked(app)
            try await fixture.ada.decide(challenge, .approve, by: lost)
            _ = try await fixture.prove(app, challenge)
        } else {
            let asked = try #require(try await fixture.proved(app, by: 1).challenge)
            try await fixture.ada.decide(asked, .approve, by: lost)
        }
        #expect(try await fixture.state(app).phase == .ready)
        try await fixture.replacePhone(phones)
        #expect(try await fixture.state(app).phase == .cancelled)
        #expect(try fixture.events("recovery.cancelled")[0] == 1)
    }

    // MARK: Races

    /// The website asks for the proof again while the answer to it is on its way.
    @Test func proofCountsAlthoughItWasAskedForMeanwhile() async throws {
        let fixture = try await RecoveryFixture(.mariadb, hasPhone: false)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let handle = try await fixture.opened()
        let challenge = try await fixture.asked(handle)
        _ = try await fixture.answer(challenge, fixture.codes[0])
        let (store, other) = try fixture.interrupted {
            try rig.forge("UPDATE recovery SET operation = x'00000000000000000000000000000001'")
        }
        defer { store.close() }
        let proved = try await rig.on { _ in
            try await other.proveRecovery(handle: handle, approval: challenge, by: shop, as: other.operations.new())
        }
        await rig.settled()
        #expect(proved.phase == .waiting)
    }

}

extension RecoveryFixture {
    /// Has a link mailed, as `twoefay user recover` does.
    fileprivate func startedByOperator() async throws -> RecoveryStart {
        let (store, now, shop, user) = (rig.store, rig.time.now(), shop, try await id())
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        return try await rig.on { relay in
            let operation = relay.operations.new()
            let delivery = RecoveryMail.Delivery(
                to: user, of: shop.id, language: nil, sender: nil, at: now, as: operation, by: try RelayRig.sealer(),
                SystemRandomness())
            let new = try NewRecovery(.totp, of: user, by: .operator, drawn, delivery)
            return try await store.run(Recoveries.start(new, as: operation))
        }
    }

    /// Binds the phone that replaces the lost ones.
    fileprivate func replacePhone(_ handle: String) async throws {
        let shop = shop
        let code = try await rig.on { relay in
            try await relay.recoverPhone(handle: handle, by: shop, as: relay.operations.new())
        }.code
        _ = try await ada.bound(try TestPhone(pushToken: "new"), code)
    }

    /// Returns a relay on the same tables, between whose first check and change of rows something
    /// else is written.
    fileprivate func interrupted(_ write: @escaping @Sendable () throws -> Void) throws -> (Store, Relay) {
        let isDone = Mutex(false)
        let store = try Store.watched(at: rig.url, rows: RelayRig.rowAuthenticator()) {
            (steps, session) throws(SessionFailure) in
            // The check of the rows locks them.
            let isChange = steps.contains {
                !$0.statement.sql.hasPrefix("SELECT") || $0.statement.sql.contains("FOR UPDATE")
            }
            let isFirst = isDone.withLock { done in
                defer { done = done || isChange }
                return isChange && !done
            }
            if isFirst {
                do { try write() } catch { throw .statement("nothing was written: \(error)") }
            }
            return try session.run(steps)
        }
        return (store, try rig.relay(over: store))
    }
}
