import Domain
import Log
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// Changes at one relay, or by an operator's tool, that wake held requests at another relay.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ChangeFeedWakeTests {
    /// The stores that several processes can write to.
    private static let shared: [StoreKind] = [.file, .mariadb]

    /// Ada's website and phone have held requests at a relay at which nothing changes.
    private struct Fixture {
        let websites: TwoWebsitesFixture
        let away: RelayRig

        init(_ kind: StoreKind) async throws {
            websites = try await TwoWebsitesFixture(kind)
            away = try await RelayRig(beside: websites.rig)
            try await look()
        }

        func look() async throws { try await away.on { relay in await relay.watch() } }

        func wait(for events: HeldRequests.Event...) -> Woken {
            Woken(away.relay.heldRequests.ticket(for: events))
        }

        /// Expects that the requests are woken by the relay's next poll, and not earlier.
        func expectWoken(_ woken: [Woken]) async throws {
            #expect(!woken.contains { $0.isWoken })
            try await look()
            #expect(woken.allSatisfy { $0.isWoken })
            #expect(away.relay.heldRequests.isEmpty)
        }
    }

    private final class Woken: Sendable {
        private let state = Mutex(false)
        let ticket: HeldRequests.Ticket

        init(_ ticket: HeldRequests.Ticket) {
            self.ticket = ticket
            ticket.arm { self.state.withLock { $0 = true } }
        }

        var isWoken: Bool { state.withLock { $0 } }
    }

    enum End: CaseIterable, Sendable {
        case answered, cancelled, expired, superseded, locked, forgotten
    }

    @Test(arguments: shared, End.allCases) func everyRemoteEndAnswersTheHeldRequest(kind: StoreKind, end: End)
        async throws
    {
        let fixture = try await Fixture(kind)
        let (websites, rig) = (fixture.websites, fixture.websites.rig)
        let asked = try await websites.ask()
        // The relay learns of the login.
        try await fixture.look()
        let woken = [
            fixture.wait(for: .challenge(asked.challenge)),
            // A phone that shows the challenge.
            fixture.wait(for: .user(websites.first.credential.user), .challenge(asked.challenge)),
        ]
        switch end {
        case .answered:
            #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: websites.first) == .success)
        case .cancelled:
            try await rig.on { [shop = websites.shop] relay in try await relay.cancel(asked.challenge, by: shop) }
        case .expired:
            rig.time.advance(by: .seconds(300))
            try await rig.on { relay in await relay.processDueEntries() }
            await rig.settled()
        case .superseded: _ = try await websites.ask()
        // Changed as the operator's tool does it, which is a separate process.
        case .locked: #expect(try await websites.lock())
        case .forgotten:
            try await rig.on { [shop = websites.shop] relay in try await relay.forget(username: "ada", by: shop) }
        }
        try await fixture.expectWoken(woken)
    }

    @Test(arguments: shared) func remoteLoginAnswersTheHeldPoll(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let websites = fixture.websites
        let user = websites.first.credential.user
        let others = fixture.wait(for: .user(websites.bob.credential.user))
        let phone = fixture.wait(for: .user(user))
        let first = try await websites.ask()
        try await fixture.look()
        #expect(phone.isWoken && !others.isWoken)
        // The relay polls again. A change that it already knows wakes nothing, even if it is read again.
        let again = fixture.wait(for: .user(user), .challenge(first.challenge))
        for _ in 0..<3 {
            websites.rig.time.advance(by: .seconds(1))
            try await fixture.look()
        }
        #expect(!again.isWoken)
        others.ticket.cancel()
        again.ticket.cancel()
        #expect(fixture.away.relay.heldRequests.isEmpty)
    }

    /// The login failed at once, so a phone has nothing to show.
    @Test(arguments: shared) func remoteFailedLoginWakesNoPhone(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        #expect(try await fixture.websites.lock())
        let phone = fixture.wait(for: .user(fixture.websites.first.credential.user))
        let asked = try await fixture.websites.ask()
        #expect(try await fixture.websites.reported(asked).reason == .locked)
        try await fixture.look()
        #expect(!phone.isWoken)
        phone.ticket.cancel()
    }

    @Test(arguments: shared) func remoteUnbindingAnswersTheHeldPoll(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let (websites, rig) = (fixture.websites, fixture.websites.rig)
        let other = fixture.wait(for: .phone(websites.second.credential.id))
        let lost = fixture.wait(for: .phone(websites.first.credential.id))
        // Changed as the operator's tool does it.
        var change = DeviceChange(
            websites.first.credential.id, of: websites.first.credential.user, by: .operator, at: rig.time.now())
        change.state = .revoked
        let written = change
        _ = try await rig.on { relay in try await relay.store.change(written, as: relay.operations.new()) }
        try await fixture.look()
        #expect(lost.isWoken && !other.isWoken)
        other.ticket.cancel()
    }

    /// Other steps of the same login wake no request.
    @Test(arguments: shared) func remoteStepWakesNobody(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let (websites, rig) = (fixture.websites, fixture.websites.rig)
        let asked = try await websites.ask()
        try await fixture.look()
        let woken = fixture.wait(for: .challenge(asked.challenge))
        await rig.settled()
        #expect(rig.pushes.sent.count == 2)
        _ = try await rig.on { [credential = websites.first.credential] relay in
            try await relay.pending(for: credential)
        }
        try await fixture.look()
        #expect(!woken.isWoken)
        woken.ticket.cancel()
    }

    /// MariaDB assigns the id when the row is written. A later row of another relay is committed first.
    @Test func lateCommitWithALowerIDIsNotMissed() async throws {
        let fixture = try await Fixture(.mariadb)
        let (websites, rig) = (fixture.websites, fixture.websites.rig)
        let asked = try await websites.ask()
        await rig.settled()
        let woken = fixture.wait(for: .challenge(asked.challenge))
        let number = try rig.count("SELECT max(id) FROM audit") + 1
        // Reserves the id of a row that is not committed yet, so the next row gets a higher id.
        try rig.execute("ALTER TABLE audit AUTO_INCREMENT = \(number + 1)")
        #expect(try await websites.reported(asked).result == .wait)
        try await rig.on { [carl = websites.carl, bank = websites.bank] relay in
            try await relay.unbind(carl.credential.id, ofUser: "carl", by: bank)
        }
        #expect(try rig.count("SELECT max(id) FROM audit") > number)
        for _ in 0..<5 {
            try await fixture.look()
            rig.time.advance(by: .seconds(1))
        }
        #expect(!woken.isWoken)
        try rig.execute(
            """
            INSERT INTO audit (id, operation, at, event, challenge_id)
            VALUES (\(number), x'000102030405060708090a0b0c0d0e0f', '2027-01-15 08:00:00.000', 'challenge.ended',
            x'\(asked.challenge)')
            """)
        try await fixture.look()
        #expect(woken.isWoken)
    }

    @Test(arguments: shared) func changeFeedOutageIsLoggedOnceAndMissesNothing(kind: StoreKind) async throws {
        let place = try await kind.fresh()
        let rig = try await RelayRig(over: place, time: TestTime())
        let shop = try await rig.website("shop")
        let ada = try await rig.enrolled("ada", at: shop)
        let isAway = Mutex(false)
        let store = try Store.watched(at: place.url) { (steps, session) throws(SessionFailure) in
            if isAway.withLock({ $0 }) { throw .refused("away") }
            return try session.run(steps)
        }
        defer { store.close() }
        let relay = try rig.relay(over: store)
        func look() async throws { try await rig.on { _ in await relay.watch() } }
        try await look()
        let asked = try await rig.on { rig in
            try await rig.login(LoginRequest(subject: .token(ada.user)), by: shop, as: rig.operations.new())
        }
        let woken = Woken(relay.heldRequests.ticket(for: .challenge(asked.challenge)))
        _ = rig.sink.drain()
        isAway.withLock { $0 = true }
        try await rig.on { rig in try await rig.cancel(asked.challenge, by: shop) }
        for _ in 0..<5 { try await look() }
        #expect(!woken.isWoken)
        isAway.withLock { $0 = false }
        for _ in 0..<5 { try await look() }
        #expect(woken.isWoken)
        let lines = rig.sink.drain().filter { $0.contains("event=watch.") }
        #expect(lines.count == 2)
        #expect(lines.first?.contains("event=watch.failing") == true && lines.first?.contains("away") == true)
        #expect(lines.last?.contains("event=watch.recovered") == true)
    }
}
