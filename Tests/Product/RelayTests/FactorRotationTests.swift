import Bytes
import Crypto
import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// A change of the master key under running relays: codes are accepted before, during and after it.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct FactorRotationTests {
    private static let insert = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, secret, sealed_by, algorithm, digits, period, counter, failures,
        created_at, operation)
        VALUES (:factor, :user, 'totp', 'active', :secret, :key, 'sha1', 6, 30, 0, 0, :now, :operation)
        """)
    private static let sealed = Statement("SELECT id, user_id, secret, sealed_by FROM factor ORDER BY id")

    private static let old = Sealer.Key(id: "1", key: Secret(Array(repeating: 7, count: 32)))

    private static func new(next: Bool = false) -> Sealer.Key {
        Sealer.Key(id: "2", key: Secret(Array(repeating: 8, count: 32)), isNext: next)
    }

    /// The key of RFC 4226; its first code is 755224.
    private static let seed = Array("12345678901234567890".utf8)

    private struct Fixture {
        let rig: RelayRig
        let shop: Website
        let other: Relay

        init(_ kind: StoreKind, factors: Int) async throws {
            rig = try await RelayRig(kind)
            shop = try await rig.website("shop")
            other = try rig.relay(over: rig.store)
            for number in 0..<factors { try await add("user-\(number)") }
        }

        /// Adds a user with a TOTP factor, sealed with the current key of the rig's relay.
        func add(_ username: String) async throws {
            let (store, shop, now) = (rig.store, shop, rig.time.now())
            try await rig.on { relay in
                let (token, _) = try await relay.register(
                    Registration(username: username, email: nil, phone: nil, displayName: nil, language: nil), by: shop,
                    as: relay.operations.new())
                let user = try #require(try await relay.store.user(token: token, of: shop.id, at: relay.time.now())).id
                let id: FactorID = relay.operations.draw()
                let associated = FactorSeal.associated(website: shop.id, user: user, kind: .totp, row: id)
                let secret = try relay.sealer.seal(FactorRotationTests.seed, associated: associated)
                let operation: OperationID = relay.operations.draw()
                _ = try await store.run(
                    Script(
                        "insert", rows: SignedRows.everythingAdopted,
                        writes: [
                            FactorRotationTests.insert(
                                factor: .blob(id.bytes), user: .blob(user.bytes), secret: .blob(secret),
                                key: .text(try Sealer.keyID(of: secret)), now: .text(now.sql),
                                operation: .blob(operation.bytes))
                        ]))
            }
        }

        /// Returns the number of rows under each key, after a check that the named key opens each row.
        func keys() async throws -> [String: Int] {
            var counts: [String: Int] = [:]
            for row in try await rows() {
                let key = try row.text("sealed_by")
                #expect(try Sealer.keyID(of: try row.blob("secret")) == key)
                counts[key, default: 0] += 1
            }
            return counts
        }

        func rows() async throws -> [Row] {
            let store = rig.store
            return try await rig.on { _ in
                Array(try await store.run(Script("rows", reads: [FactorRotationTests.sealed()]))[0])
            }
        }

        /// Returns the number of factors whose code is right at that relay.
        func codes(at relay: Relay) async throws -> Int {
            var right = 0
            for row in try await rows() {
                guard let id = FactorID(try row.blob("id")), let user = UserID(try row.blob("user_id")) else {
                    continue
                }
                let factor = CodeFactor(
                    id: id, kind: .totp, state: .active, secret: try row.blob("secret"), algorithm: .sha1, digits: 6,
                    period: 30, counter: 0, address: nil, failures: 0, failedAt: nil, createdAt: rig.time.now(),
                    confirmedAt: nil)
                guard let secret = try? relay.secret(of: factor, user: user, website: shop.id) else { continue }
                if OTP.matches("755224", secret: secret, counter: 0, algorithm: .sha1, digits: 6) { right += 1 }
            }
            return right
        }

        func reseal(_ relay: Relay) async throws { try await rig.on { _ in await relay.reseal() } }
    }

    @Test(arguments: StoreKind.all) func codesStayValidDuringKeyRotation(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, factors: 5)
        let (one, two) = (fixture.rig.relay, fixture.other)
        func count() async throws {
            let factors = try await fixture.rows().count
            #expect(try await fixture.codes(at: one) == factors)
            #expect(try await fixture.codes(at: two) == factors)
        }
        try await count()
        // First one relay knows the new key, then both. Neither reseals anything.
        one.replace(try Sealer(keys: [Self.new(next: true), Self.old]))
        try await fixture.reseal(one)
        try await fixture.reseal(two)
        #expect(try await fixture.keys() == ["1": 5])
        try await count()
        two.replace(try Sealer(keys: [Self.new(next: true), Self.old]))
        // One relay uses the new key. The other opens its values, and does not reseal them with the old key.
        one.replace(try Sealer(keys: [Self.new(), Self.old]))
        try await fixture.add("late")
        #expect(try await fixture.keys() == ["1": 5, "2": 1])
        try await fixture.reseal(two)
        #expect(try await fixture.keys() == ["1": 5, "2": 1])
        try await count()
        try await fixture.reseal(one)
        #expect(try await fixture.keys() == ["2": 6])
        try await count()
        try await fixture.reseal(two)
        #expect(try await fixture.keys() == ["2": 6])
        two.replace(try Sealer(keys: [Self.new(), Self.old]))
        try await count()
        // The old key is dropped.
        for relay in [one, two] { relay.replace(try Sealer(keys: [Self.new()])) }
        try await count()
        #expect(fixture.rig.sink.lines.count { $0.contains("event=factor.resealed") } == 1)
    }

    /// A relay without the new key accepts no code that it cannot open. Nothing is lost, and it recovers when it
    /// gets the key.
    @Test(arguments: StoreKind.all) func relayWithoutTheKeyFailsClosed(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, factors: 2)
        fixture.rig.relay.replace(try Sealer(keys: [Self.new(), Self.old]))
        try await fixture.reseal(fixture.rig.relay)
        #expect(try await fixture.codes(at: fixture.other) == 0)
        try await fixture.reseal(fixture.other)
        #expect(try await fixture.keys() == ["2": 2])
        #expect(fixture.rig.sink.lines.contains { $0.contains("event=factor.sealed") && $0.contains("level=error") })
        fixture.other.replace(try Sealer(keys: [Self.new(), Self.old]))
        #expect(try await fixture.codes(at: fixture.other) == 2)
    }

    /// The relay stops after some of them; another one continues from there.
    @Test(arguments: StoreKind.all) func interruptedResealingIsResumed(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, factors: 230)
        let sealer = try Sealer(keys: [Self.new(), Self.old])
        fixture.rig.relay.replace(sealer)
        let some = try await fixture.rig.on { relay in try await relay.resealSome(of: "1", to: sealer, skipping: 0) }
        #expect((some.done, some.failed) == (100, 0))
        #expect(try await fixture.keys() == ["1": 130, "2": 100])
        #expect(try await fixture.codes(at: fixture.rig.relay) == 230)
        fixture.other.replace(sealer)
        try await fixture.reseal(fixture.other)
        #expect(try await fixture.keys() == ["2": 230])
        #expect(try await fixture.codes(at: fixture.other) == 230)
    }

    /// A row that was tampered with does not open. It stays as it is, and does not stop the others.
    @Test(arguments: StoreKind.all) func unreadableRowIsSkipped(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, factors: 120)
        let rows = try await fixture.rows()
        let harm = Statement("UPDATE factor SET secret = :secret WHERE id = :factor")
        var steps: [BoundStatement] = []
        for row in rows.prefix(3) {
            var bytes = try row.blob("secret")
            bytes[bytes.count - 1] ^= 1
            steps.append(harm(secret: .blob(bytes), factor: .blob(try row.blob("id"))))
        }
        let (store, script) = (fixture.rig.store, Script("harm", writes: steps))
        try await fixture.rig.on { _ in _ = try await store.run(script) }
        fixture.rig.relay.replace(try Sealer(keys: [Self.new(), Self.old]))
        try await fixture.reseal(fixture.rig.relay)
        #expect(try await fixture.keys() == ["1": 3, "2": 117])
        #expect(fixture.rig.sink.lines.contains { $0.contains("event=factor.stuck") && $0.contains("count=3") })
    }

    /// The factor was replaced after it was read: the new secret is not overwritten.
    @Test(arguments: StoreKind.all) func replacedSecretIsNotOverwritten(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind, factors: 1)
        let before = try #require(try await fixture.rows().first)
        let id = try #require(FactorID(try before.blob("id")))
        let late = ResealedFactor(id: id, old: [1, 2, 3], new: [4, 5, 6], key: "2")
        let store = fixture.rig.store
        try await fixture.rig.on { _ in try await store.reseal([late]) }
        let after = try #require(try await fixture.rows().first)
        #expect(try after.blob("secret") == (try before.blob("secret")))
        #expect(try await fixture.keys() == ["1": 1])
    }
}
