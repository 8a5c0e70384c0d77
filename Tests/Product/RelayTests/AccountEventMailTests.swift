import DeliveryOutcomes
import Domain
import Log
import Metrics
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The mails that notify users of events of their accounts.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AccountEventMailTests {
    /// A user, Ada, who has just bound a phone.
    private struct Fixture {
        let rig: RelayRig
        let shop: Website
        let ada: Person
        let phone: PhoneCredential

        init(_ kind: StoreKind, email: String? = "ada@example.com") async throws {
            rig = try await RelayRig(kind)
            shop = try await rig.shop("shop", ["number": "0"])
            ada = try await Person.registered("ada", at: shop, rig, email: email)
            phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        }

        func mails(_ condition: String = "1 = 1") throws -> Int64 {
            try rig.count("SELECT count(*) FROM outbox WHERE kind = 'mail' AND \(condition)")
        }

        /// Locks Ada as an operator, and unlocks her.
        func lockAndUnlock() async throws {
            let (store, user, now) = (rig.store, phone.user, rig.time.now())
            _ = try await rig.on { try await store.run(Locks.lock(user, at: now, as: $0.operations.new())) }
            _ = try await rig.on { relay in
                try await store.unlock(
                    user, from: [.locked], by: .operator, at: now, as: relay.operations.new())
            }
        }
    }

    @Test(arguments: StoreKind.all) func accountEventsAreMailed(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let rig = fixture.rig
        let boundAt = rig.time.now()
        try await rig.round(after: .seconds(1))
        let phone = fixture.phone.id
        try await rig.on { relay in try await relay.unbind(phone, ofUser: "ada", by: fixture.shop) }
        try await rig.round(after: .seconds(1))
        try await fixture.lockAndUnlock()
        try await rig.round(after: .seconds(1))
        var reported: [String] = []
        for mail in rig.mails.sent {
            guard case .announcement(let announcement, let device, let at) = mail.content else {
                throw RigFailure("no announcement: \(mail)")
            }
            reported.append("\(announcement.rawValue) \(device ?? "-")")
            #expect(mail.to == "ada@example.com" && mail.website == "The shop")
            #expect(at == boundAt + .seconds(Int64(reported.count) - 1) && mail.expiresAt == at + .seconds(86_400))
        }
        #expect(reported == ["device.bound Phone", "device.unbound Phone", "user.locked -"])
        #expect(try fixture.mails() == 0)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'mail.settled' AND outcome = 'accepted'") == 3)
        let lines = rig.sink.drain().filter { $0.contains("event=mail.accepted") }
        #expect(lines.count == 3 && lines[0].contains("kind=device.bound"), "\(lines)")
        #expect(lines.allSatisfy { !$0.contains("example.com") })
    }

    @Test(arguments: StoreKind.all) func fraudReportIsMailed(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["answers": "signed", "number": "0"])
        let ada = try await Person.registered("ada", at: shop, rig, email: "ada@example.com")
        let phone = try TestPhone(pushToken: "first")
        let credential = try await ada.bound(phone, ada.code)
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(ada.token)), by: shop, as: relay.operations.new())
        }
        _ = try await rig.decide(.fraud, asked.challenge, by: (phone, credential))
        try await rig.round(after: .seconds(1))
        let reported = rig.mails.sent.compactMap { mail -> AccountEvent? in
            guard case .announcement(let announcement, _, _) = mail.content else { return nil }
            return announcement
        }
        #expect(Set(reported) == [.deviceBound, .userFrozen] && reported.count == 2)
    }

    /// The address for codes, rather than the one that the website gave at /register.
    @Test(arguments: StoreKind.all) func eventMailGoesToTheConfirmedAddress(kind: StoreKind) async throws {
        for email in ["old@example.com", nil] {
            let fixture = try await Fixture(kind, email: email)
            let user = fixture.phone.user
            // An address from /register already has a factor.
            if email == nil {
                try fixture.rig.addFactor(.mail, of: user, at: fixture.shop, address: "new@example.com")
            } else {
                try fixture.rig.execute("UPDATE factor SET address = 'new@example.com' WHERE kind = 'mail'")
            }
            try fixture.rig.addFactor(
                .mail, of: user, at: fixture.shop, address: "waiting@example.com", state: .waiting)
            try await fixture.lockAndUnlock()
            try await fixture.rig.round(after: .seconds(1))
            // An address that was added after the event gets its mail, too.
            #expect(fixture.rig.mails.sent.count == 2)
            #expect(Set(fixture.rig.mails.sent.map(\.to)) == ["new@example.com"])
        }
    }

    @Test(arguments: StoreKind.all) func eventMailIsRetriedForADayAndThenDead(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let rig = fixture.rig
        rig.mails.answer(.misconfigured(.service, reason: "wrong password"))
        rig.mails.answerOtherwise { _ in .retry(after: nil, reason: "421 busy") }
        for _ in 0..<(23 * 4) { try await rig.round(after: .seconds(900)) }
        #expect(try fixture.mails("due_at IS NOT NULL AND dead_at IS NULL AND reason = '421 busy'") == 1)
        for _ in 0..<8 { try await rig.round(after: .seconds(900)) }
        #expect(
            try fixture.mails("due_at IS NULL AND dead_at IS NOT NULL AND reason = '421 busy' AND holder IS NULL") == 1)
        let tries = rig.mails.sent.count
        #expect((20...36).contains(tries), "\(tries)")
        #expect(Set(rig.mails.sent.map(\.id)).count == 1)
        for _ in 0..<8 { try await rig.round(after: .seconds(900)) }
        #expect(rig.mails.sent.count == tries)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'mail.dead' AND outcome = '421 busy'") == 1)
    }

    /// Metrics and operators see overdue entries and dead letters. They are deleted after a month.
    @Test(arguments: StoreKind.all) func deadLettersAreCountedAndFinallyDeleted(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let rig = fixture.rig
        rig.time.advance(by: .seconds(90))
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_outbox_oldest_overdue_seconds") == 90)
        #expect(rig.registry.number("twoefay_outbox_dead_letters") == 0)
        rig.mails.answer(.unregistered(since: nil, reason: "550 no such user"))
        try await rig.round(after: .zero)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(rig.registry.number("twoefay_outbox_oldest_overdue_seconds") == 0)
        #expect(rig.registry.number("twoefay_outbox_dead_letters") == 1)
        rig.time.advance(by: Relay.deadFor)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.mails() == 1)
        rig.time.advance(by: .seconds(1))
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.mails() == 0)
    }

    @Test(arguments: StoreKind.all) func permanentlyRefusedEventMailIsDeadAtOnce(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        fixture.rig.mails.answer(.unregistered(since: nil, reason: "550 no such user"))
        try await fixture.rig.round(after: .seconds(1))
        #expect(try fixture.mails("due_at IS NULL AND dead_at IS NOT NULL AND reason = '550 no such user'") == 1)
        #expect(fixture.rig.sink.drain().contains { $0.contains("level=warning event=mail.refused") })
    }

    /// A mail server that is set up later has no use for the old entry, and an operator cannot act on it.
    @Test(arguments: StoreKind.all) func eventMailIsDroppedWithoutAMailServer(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let other = try fixture.rig.another()
        let entry = try #require(
            OutboxEntryID(try fixture.rig.text("SELECT lower(hex(id)) FROM outbox WHERE kind = 'mail'")))
        try fixture.rig.execute("UPDATE outbox SET holder = x'\(other.id.text)' WHERE kind = 'mail'")
        try await fixture.rig.on { _ in await other.deliver(entry) }
        #expect(try fixture.mails() == 0)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'mail.settled' AND outcome = 'no mail server is set'") == 1)
        // An installation without a mail server is no reason for an alert.
        let lines = fixture.rig.sink.drain().filter { $0.contains("event=mail.") }
        #expect(lines.count == 1 && lines[0].contains("level=info event=mail.undeliverable"), "\(lines)")
    }

    @Test(arguments: StoreKind.all) func eventWithoutAMailServerIsCounted(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        try await fixture.rig.on { relay in relay.replace(MessageCouriers()) }
        try await fixture.rig.round(after: .seconds(1))
        #expect(fixture.rig.registry.number("twoefay_announcements_unsent_total{reason=\"no_server\"}") == 1)
        #expect(try fixture.mails() == 0)
    }

    /// A lock of which nobody learns is counted, and the audit of the user has the reason.
    @Test(arguments: StoreKind.all) func eventOfAUserWithoutAnAddressIsCounted(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, email: nil)
        let (rig, user) = (fixture.rig, fixture.phone.user)
        let metric = "twoefay_announcements_unsent_total{reason=\"no_address\"}"
        #expect(rig.registry.number(metric) == 0)
        try await fixture.lockAndUnlock()
        rig.time.advance(by: .seconds(5))
        try await rig.round(after: .zero)
        #expect(rig.mails.sent.isEmpty)
        #expect(try fixture.mails() == 0)
        // The phone that was bound, and the lock.
        #expect(rig.registry.number(metric) == 2)
        let now = rig.time.now()
        let unsent = try await rig.on { _ in try await rig.store.run(Announcements.unsent(to: user)) }
        #expect(unsent == Announcements.Unsent(count: 2, lastAt: now))
        let bob = try await Person.registered("bob", at: fixture.shop, rig, email: "bob@example.com")
        let other = try await bob.bound(try TestPhone(pushToken: "bob"), bob.code).user
        try await rig.round(after: .seconds(1))
        #expect(rig.mails.sent.map(\.to) == ["bob@example.com"])
        let none = try await rig.on { _ in try await rig.store.run(Announcements.unsent(to: other)) }
        #expect(none == Announcements.Unsent(count: 0, lastAt: nil))
    }

    @Test(arguments: StoreKind.all) func eventMailsPerUserAreLimited(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let rig = fixture.rig
        rig.mails.answer(.retry(after: nil, reason: "busy"))
        for _ in 0..<12 { try await fixture.lockAndUnlock() }
        // The deferred mail is any one of this round: entries that are due at the same time have no order.
        try await rig.round(after: .seconds(60))
        let bob = try await Person.registered("bob", at: fixture.shop, rig, email: "bob@example.com")
        _ = try await bob.bound(try TestPhone(pushToken: "bob"), bob.code)
        for _ in 0..<2 { try await rig.round(after: .seconds(60)) }
        let mine = rig.mails.sent.filter { $0.to == "ada@example.com" }
        // Those of one kind of event, and the one about the phone that was bound. One was sent twice.
        #expect(Set(mine.map(\.id)).count == NotificationBudget.most + 1 && mine.count == NotificationBudget.most + 2)
        #expect(rig.mails.sent.filter { $0.to == "bob@example.com" }.count == 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'mail.settled' AND outcome = 'limited'") == 9)
        #expect(rig.sink.drain().filter { $0.contains("event=mail.limited") }.count == 9)
        #expect(try fixture.mails() == 0)
        // An hour later the limit allows mails again.
        rig.time.advance(by: NotificationBudget.hour)
        try await fixture.lockAndUnlock()
        try await rig.round(after: .seconds(1))
        #expect(rig.mails.sent.filter { $0.to == "ada@example.com" }.count == NotificationBudget.most + 3)
    }

    /// Whoever holds the phone can cause some events at will, and must not hide another one by them.
    @Test(arguments: StoreKind.all) func eventsOfOneKindSuppressNoOther(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        for _ in 0..<12 { try await fixture.lockAndUnlock() }
        for _ in 0..<3 { try await fixture.rig.round(after: .seconds(60)) }
        let before = fixture.rig.mails.sent.count
        let phone = fixture.phone.id
        try await fixture.rig.on { relay in try await relay.unbind(phone, ofUser: "ada", by: fixture.shop) }
        try await fixture.rig.round(after: .seconds(60))
        #expect(fixture.rig.mails.sent.count == before + 1)
    }

    @Test(arguments: StoreKind.all) func deletedUserGetsNoEventMail(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let shop = fixture.shop
        try await fixture.rig.on { relay in try await relay.forget(username: "ada", by: shop) }
        try await fixture.rig.round(after: .seconds(1))
        #expect(fixture.rig.mails.sent.isEmpty)
        #expect(try fixture.mails() == 0)
    }
}
