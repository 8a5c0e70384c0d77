import Bytes
import Crypto
import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The keys that the relays of an installation make by themselves, with a period of an hour.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct RollingKeyTests {
    private static let hourly = RollingKeySettings(nonces: RollingKeySchedule(period: .seconds(3600)))

    private func relay(_ rig: RelayRig) throws -> Relay { try rig.relay(over: rig.store, rolling: Self.hourly) }

    private func roll(_ relay: Relay, _ rig: RelayRig) async throws { try await rig.on { _ in await relay.rollKeys() } }

    private func keys(_ rig: RelayRig) throws -> [SealedRollingKey] {
        try rig.store.runBlocking(RollingKeyRows.read(.nonces))
    }

    private func nonce(_ relay: Relay, _ rig: RelayRig) -> String { relay.nonces.current(at: rig.time.now()) }

    private func accepts(_ relay: Relay, _ nonce: String, _ rig: RelayRig) -> Bool {
        relay.nonces.step(of: nonce, at: rig.time.now()) != nil
    }

    @Test(arguments: StoreKind.all) func relaysAgreeOnEachNewKey(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let relays = [try relay(rig), try relay(rig)]
        // The relays accept nonces of each other six seconds after the last one was started.
        rig.time.advance(by: .seconds(6))
        for number in 1...4 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for relay in relays { group.addTask { try await roll(relay, rig) } }
                try await group.waitForAll()
            }
            // A relay that lost the race reads the key of the other one.
            let eras = try keys(rig).map(\.era)
            #expect(eras.map(\.number).max() == Int64(number))
            #expect(eras.count == number)
            for _ in 0..<2 {
                for (one, other) in [(0, 1), (1, 0)] {
                    #expect(accepts(relays[other], nonce(relays[one], rig), rig))
                }
                rig.time.advance(by: .seconds(1800))
            }
        }
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'key.rolled'") == 4)
        #expect(
            try rig.text("SELECT note FROM AuditTrail WHERE event = 'key.rolled' AND note LIKE '%3'") == "nonces 3")
    }

    @Test(arguments: StoreKind.all) func newKeyIsKnownBeforeItIsUsed(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let (one, other) = (try relay(rig), try relay(rig))
        rig.time.advance(by: .seconds(6))
        try await roll(one, rig)
        try await roll(other, rig)
        rig.time.advance(by: .seconds(3600))
        try await roll(one, rig)
        // The other relay has not read the second key yet. Nothing uses it.
        rig.time.advance(by: .seconds(299))
        let before = nonce(one, rig)
        #expect(accepts(other, before, rig))
        try await roll(other, rig)
        rig.time.advance(by: .seconds(1))
        let after = nonce(one, rig)
        #expect(accepts(other, after, rig) && accepts(other, before, rig))
        #expect(try keys(rig).count == 2)
    }

    @Test func nonceOfAnEndedKeyIsRefused() async throws {
        let rig = try await RelayRig(.memory)
        let relay = try relay(rig)
        rig.time.advance(by: .seconds(6))
        try await roll(relay, rig)
        let end = try #require(try keys(rig).first).era.endsAt
        rig.time.advance(by: end - rig.time.now() - .seconds(1))
        let last = nonce(relay, rig)
        #expect(accepts(relay, last, rig))
        rig.time.advance(by: .seconds(1))
        #expect(!accepts(relay, last, rig))
    }

    /// The nonces of relays with rolling keys, and the key that is derived from the master key.
    @Test func derivedKeyIsUsedOnlyWithoutRollingKeys() async throws {
        let rig = try await RelayRig(.memory)
        let (fixed, rolling) = (rig.relay, try relay(rig))
        rig.time.advance(by: .seconds(6))
        let derived = nonce(fixed, rig)
        #expect(accepts(rolling, derived, rig))
        try await roll(rolling, rig)
        #expect(!accepts(rolling, derived, rig))
        #expect(!accepts(fixed, nonce(rolling, rig), rig))
        // A relay whose settings turn the keys off makes none.
        try await roll(fixed, rig)
        #expect(accepts(fixed, nonce(fixed, rig), rig))
        #expect(try keys(rig).count == 1)
    }

    @Test(arguments: StoreKind.all) func keyThatReplacesAllIsReadWhenItIsMet(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let (one, other) = (try relay(rig), try relay(rig))
        rig.time.advance(by: .seconds(6))
        try await roll(one, rig)
        try await roll(other, rig)
        let stolen = nonce(one, rig)
        let found = RollingKeys(try keys(rig), with: try RelayRig.sealer())
        let schedule = try #require(Self.hourly.nonces)
        let change = try #require(
            try found.next(
                .nonces, on: schedule, atOnce: true, by: .operator, with: try RelayRig.sealer(),
                randomness: SystemRandomness(), at: rig.time.now()))
        #expect(try rig.store.runBlocking(RollingKeyRows.roll(change, as: one.operations.new())).isDone)
        #expect(try keys(rig).map(\.era.number) == [2])
        #expect(try rig.text("SELECT outcome FROM AuditTrail WHERE note = 'nonces 2'") == "operator")
        try await roll(one, rig)
        #expect(!accepts(one, stolen, rig))
        let new = nonce(one, rig)
        #expect(!accepts(other, new, rig))
        try await rig.on { _ in await other.rollKeysIfMissed() }
        #expect(accepts(other, new, rig) && !accepts(other, stolen, rig))
        // The store is not read again at once, although the key of the stolen nonce is not known.
        #expect(!other.nonces.takeMiss(at: rig.time.now()))
    }

    /// Nonces of keys that nobody has do not let a relay read the store each second.
    @Test func readsForUnknownKeysBecomeRare() async throws {
        let rig = try await RelayRig(.memory)
        let relay = try relay(rig)
        rig.time.advance(by: .seconds(6))
        try await roll(relay, rig)
        var reads = 0
        for _ in 0..<600 {
            let now = rig.time.now()
            let strange = Nonces(
                key: Secret(Array(repeating: 2, count: 32)), since: now - .seconds(1000),
                randomness: SystemRandomness())
            #expect(!accepts(relay, strange.current(at: now), rig))
            if relay.nonces.takeMiss(at: now) { reads += 1 }
            rig.time.advance(by: .seconds(1))
        }
        #expect((2...20).contains(reads))
    }

    @Test(arguments: StoreKind.all) func keyThatReusesANumberIsReadWhenItIsMet(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let (one, other) = (try relay(rig), try relay(rig))
        rig.time.advance(by: .seconds(6))
        for _ in 0..<2 {
            for relay in [one, other] { try await roll(relay, rig) }
            rig.time.advance(by: .seconds(3600))
        }
        try rig.forge("DELETE FROM rolling_key")
        try await roll(one, rig)
        #expect(try keys(rig).map(\.era.number) == [1])
        let new = nonce(one, rig)
        #expect(!accepts(other, new, rig))
        try await rig.on { _ in await other.rollKeysIfMissed() }
        #expect(accepts(other, new, rig))
    }

    /// A relay whose clock is ahead by more than a period makes keys of its own, but not in turns
    /// with the others.
    @Test(arguments: StoreKind.all) func wrongClockMakesOneKeyInAPeriod(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let clock = TestTime()
        let right = try relay(rig)
        let wrong = try RelayRig.relay(
            over: rig.store, push: nil, phones: rig.phones, time: clock, randomness: SystemRandomness(),
            log: Log(minimum: .debug, time: clock, sink: rig.sink), isAlone: false, rolling: Self.hourly
        ) { _ in }
        clock.advance(by: rig.time.now() - clock.now() + .seconds(25 * 3600))
        for minute in 0..<120 {
            for relay in [right, wrong] { try await roll(relay, rig) }
            // The key that the right relay uses is there.
            let used = try #require(RollingKeySchedule.current(try keys(rig).map(\.era), at: rig.time.now()))
            #expect(used.startsAt <= rig.time.now(), "in minute \(minute)")
            for time in [rig.time, clock] { time.advance(by: .seconds(60)) }
        }
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'key.rolled'") == 4)
    }

    @Test func nonceWithAChangedNumberIsRefused() async throws {
        let rig = try await RelayRig(.memory)
        let relay = try relay(rig)
        rig.time.advance(by: .seconds(6))
        try await roll(relay, rig)
        rig.time.advance(by: .seconds(3600))
        try await roll(relay, rig)
        let bytes = try #require(Base64URL.decode(nonce(relay, rig)))
        #expect(accepts(relay, Base64URL.encode(bytes), rig))
        for number: UInt8 in [0, 2, 3, 255] {
            var changed = bytes
            changed[16 + 7] = number
            #expect(!accepts(relay, Base64URL.encode(changed), rig))
        }
    }

    // MARK: Attacks on the store

    /// Somebody who can write to the store changes one thing about the key.
    @Test(
        arguments: [
            "UPDATE rolling_key SET ends_at = '2100-01-01 00:00:00.000'",
            "UPDATE rolling_key SET starts_at = '2000-01-01 00:00:00.000'",
            "UPDATE rolling_key SET made_at = '2100-01-01 00:00:00.000'", "UPDATE rolling_key SET number = 7",
            "UPDATE rolling_key SET sealed = x'00'",
        ], StoreKind.all)
    func changedKeyIsNotUsedAndIsDeleted(change: String, kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let relay = try relay(rig)
        rig.time.advance(by: .seconds(6))
        try await roll(relay, rig)
        let before = nonce(relay, rig)
        let genuine = try keys(rig)
        try rig.forge(change)
        let forged = try #require(try keys(rig).first)
        try #require(genuine != [forged])
        try await roll(relay, rig)
        #expect(rig.sink.lines.contains { $0.contains("key.forged") })
        #expect(!accepts(relay, before, rig))
        #expect(accepts(relay, nonce(relay, rig), rig))
        let left = try keys(rig)
        #expect(left.count == 1 && left.first?.sealed != forged.sealed)
    }

    /// Somebody who can write to the store adds a key of their own.
    @Test(arguments: StoreKind.all) func addedKeyIsNotUsed(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let relay = try relay(rig)
        rig.time.advance(by: .seconds(6))
        try await roll(relay, rig)
        let now = rig.time.now()
        // Under the right id, and under an id that this relay does not know.
        for (id, number) in [("1", Int64(2)), ("stranger", 3)] {
            let own = try Sealer(keys: [Sealer.Key(id: id, key: Secret(Array(repeating: 1, count: 32)))])
            let era = KeyEra(
                kind: .nonces, number: number, madeAt: now, startsAt: now, endsAt: now + .seconds(86_400))
            let sealed = try own.seal(Array(repeating: 2, count: 32), associated: era.associated)
            try rig.forge(
                """
                INSERT INTO rolling_key (kind, number, sealed, sealed_by, made_at, starts_at, ends_at)
                VALUES ('nonces', \(number), x'\(Hex.encode(sealed))', '\(id)', '\(era.madeAt.sql)',
                '\(era.startsAt.sql)', '\(era.endsAt.sql)')
                """)
        }
        let strangers = Nonces(
            key: Secret(Array(repeating: 2, count: 32)), since: now - .seconds(1000), randomness: SystemRandomness())
        strangers.use([
            RollingKey(
                era: KeyEra(kind: .nonces, number: 2, madeAt: now, startsAt: now, endsAt: now + .seconds(86_400)),
                secret: Secret(Array(repeating: 2, count: 32)))
        ])
        let forged = strangers.current(at: now)
        try await roll(relay, rig)
        #expect(!accepts(relay, forged, rig))
        #expect(rig.sink.lines.contains { $0.contains("key.forged") })
        #expect(rig.sink.lines.contains { $0.contains("key.sealed") })
        // The next key gets a number above both.
        rig.time.advance(by: .seconds(3600))
        try await roll(relay, rig)
        #expect(try keys(rig).map(\.era.number) == [1, 3, 4])
    }

    /// Nobody can use up the numbers for longer than until an operator replaces the keys.
    @Test func operatorReplacesAKeyWithTheHighestNumber() async throws {
        let rig = try await RelayRig(.memory)
        let relay = try relay(rig)
        try await roll(relay, rig)
        // Sealed under the key x, which this relay does not know.
        let sealed = "010178" + String(repeating: "00", count: 28)
        try rig.forge("UPDATE rolling_key SET number = \(Int64.max), sealed = x'\(sealed)', sealed_by = 'x'")
        let sealer = try RelayRig.sealer()
        func next(atOnce: Bool) throws -> KeyRoll? {
            try RollingKeys(try keys(rig), with: sealer).next(
                .nonces, on: RollingKeySchedule(period: .seconds(3600)), atOnce: atOnce, by: .operator, with: sealer,
                randomness: SystemRandomness(), at: rig.time.now())
        }
        #expect(try next(atOnce: false) == nil)
        try await roll(relay, rig)
        #expect(rig.sink.lines.contains { $0.contains("key.stuck") })
        // The row is deleted first, so its number is free.
        let change = try #require(try next(atOnce: true))
        #expect(change.new.era.number == 1)
        #expect(try rig.store.runBlocking(RollingKeyRows.roll(change, as: relay.operations.new())).isDone)
        #expect(try keys(rig) == [change.new])
    }

    // MARK: The master key

    @Test(arguments: StoreKind.all) func keysAreSealedAgainUnderANewMasterKey(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let relay = try relay(rig)
        rig.time.advance(by: .seconds(6))
        try await roll(relay, rig)
        let before = nonce(relay, rig)
        let old = Sealer.Key(id: "1", key: RelayRig.masterKey)
        let new = Sealer.Key(id: "2", key: Secret(Array(repeating: 8, count: 32)))
        relay.replace(try Sealer(keys: [new, old]))
        try await roll(relay, rig)
        #expect(try rig.store.runBlocking(KeyUse.rolling) == ["2": 1])
        relay.replace(try Sealer(keys: [new]))
        try await roll(relay, rig)
        #expect(accepts(relay, before, rig))
        #expect(try keys(rig).map(\.era.number) == [1])
    }

    @Test func storeHasNoKeyInClear() async throws {
        let rig = try await RelayRig(.memory)
        try await roll(try relay(rig), rig)
        let rows = try keys(rig)
        let opened = RollingKeys(rows, with: try RelayRig.sealer()).keys
        #expect(rows.count == 1 && opened.count == 1)
        for (row, key) in zip(rows, opened) {
            let secret = key.secret.reveal()
            #expect(secret.count == 32)
            #expect(!row.sealed.indices.contains { row.sealed[$0...].starts(with: secret.prefix(8)) })
        }
    }
}
