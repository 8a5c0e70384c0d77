import Bytes
import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The runs that bring personal values into the form of the setting: when they begin, and what they
/// cost.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SealingRunTests {
    private func addresses(inClear rig: RelayRig) throws -> Int64 {
        try rig.count("SELECT count(*) FROM user WHERE email LIKE '%@%'")
    }

    /// Two relays are reloaded one after the other, as the page says.
    @Test(arguments: StoreKind.all) func relayThatIsReloadedLaterLeavesNothingInTheClear(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let (rig, now) = (fixture.rig, fixture.rig.time.now())
        let store = rig.store
        // The other relay uses the same store, and has the former setting.
        let other = try rig.relay(over: store)
        for relay in [rig.relay, other] {
            try await rig.on { _ in _ = try await store.sendHeartbeat(relay.id, at: now) }
        }
        #expect(try await fixture.seal(true).endedAt == now)
        // It changes rows, so another run begins a minute later.
        rig.time.advance(by: .seconds(60))
        let second = try await fixture.seal(true)
        #expect(second.changed == 0 && second.startedAt == rig.time.now())
        try fixture.use(seals: false)
        _ = try await fixture.register("late", email: "late@example.net", phone: nil)
        #expect(try addresses(inClear: rig) == 1)
        try fixture.use(seals: true)
        // The reload of the other relay, which does not hold the lease, and the next minute of the
        // one that does.
        try await rig.on { _ in await other.sealPersonalValues(afresh: true) }
        try await rig.on { relay in await relay.sealPersonalValues() }
        #expect(try addresses(inClear: rig) == 0)
    }

    @Test(arguments: StoreKind.all) func storeThatWasNeverSealedIsNotRead(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let rig = fixture.rig
        try await rig.on { relay in await relay.sealPersonalValues(afresh: true) }
        #expect(try rig.store.runBlocking(PersonalSealingRuns.last) == nil)
        // After a switch and back, it is read until nothing is left to be opened.
        _ = try await fixture.seal(true)
        #expect(try await fixture.seal(false).changed > 0)
        rig.time.advance(by: .seconds(60))
        let last = try await fixture.seal(false)
        #expect(last.changed == 0)
        rig.time.advance(by: .seconds(86_400))
        #expect(try await fixture.seal(false) == last)
    }

    @Test(arguments: StoreKind.all) func runWithoutChangesCommitsOnceForManyBatches(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        let (rig, store) = (fixture.rig, fixture.rig.store)
        for number in 0..<120 {
            _ = try await fixture.register("user-\(number)", email: nil, phone: nil)
        }
        _ = try await fixture.seal(true)
        rig.time.advance(by: .seconds(86_400))
        let (relay, now) = (rig.relay.id, rig.time.now())
        var calls = 0
        while try await rig.on({ _ in try await store.sealSomePersonalValues(by: relay, at: now) }) != nil {
            calls += 1
        }
        #expect(calls == 1)
        #expect(try store.runBlocking(PersonalSealingRuns.last)?.endedAt == now)
    }

    /// A batch ends after a number of rows, also if all of them belong to the same user.
    @Test(arguments: StoreKind.all) func batchIsBoundedByRows(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let rig = fixture.rig
        for number in 1...200 {
            try rig.forge(
                """
                INSERT INTO outbox (id, kind, user_id, address, created_at, dead_at, attempts)
                SELECT x'\(Hex.encode([UInt8](repeating: UInt8(number), count: 16)))', 'mail', id, 'a@example.com',
                created_at, created_at, 0 FROM user WHERE username = 'bob'
                """)
        }
        let personal = PersonalSealer(try RelayRig.sealer(), seals: true)
        var (mark, batches): ([UInt8]?, Int) = (PersonalSealingRuns.start, 0)
        while let place = mark {
            let batch = try rig.store.runBlocking(
                PersonalRows.next(of: .outbox, after: place, personal, try RelayRig.rowAuthenticator()))
            #expect(batch.checked <= 50)
            mark = batch.last
            batches += 1
        }
        #expect(batches > 4)
        let run = try await fixture.seal(true)
        #expect(run.endedAt != nil && run.stuck == 200)
    }

    /// A code that was mailed in the clear stays valid if the address is confirmed in sealed form.
    @Test(arguments: StoreKind.all) func confirmationDuringTheSwitchKeepsTheMailedCode(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop(
            "shop", ["enrolment": "letter", "factors": "push", "addresses": "confirmed"])
        let address = "ada@example.com"
        let (token, _) = try await rig.on { relay in
            try await relay.register(
                Registration(username: "ada", email: address, phone: nil, displayName: nil, language: nil), by: shop,
                as: relay.operations.new())
        }
        let ada = Person(rig: rig, website: shop, username: "ada", token: token, code: "")
        var (code, confirmation): (String?, String?)
        while code == nil || confirmation == nil {
            let mail = await rig.mails.next()
            if let activation = mail.activation { code = activation.code } else { confirmation = try addressCode(mail) }
        }
        rig.store.use(PersonalSealer(try RelayRig.sealer(), seals: true))
        #expect(try await ada.confirm(address, try #require(confirmation)))
        _ = try await ada.bound(try TestPhone(pushToken: "ada"), try #require(code))
    }
}
