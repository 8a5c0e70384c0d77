import Bytes
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The rows of rolling keys: one key for each number, and one change for each operation.
@Suite(.mayBlock) struct RollingKeyRowTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func key(_ number: Int64, _ sealed: [UInt8], at made: Timestamp? = nil) -> SealedRollingKey {
        let made = made ?? now
        let era = KeyEra(
            kind: .nonces, number: number, madeAt: made, startsAt: made, endsAt: made + .seconds(7200))
        return SealedRollingKey(era: era, sealed: sealed, sealedBy: "key")
    }

    private func roll(
        _ key: SealedRollingKey, replacesAll: Bool = false, deleting useless: [SealedRollingKey] = [], on store: Store
    ) async throws -> KeyRollOutcome {
        try await store.roll(
            KeyRoll(key, replacesAll: replacesAll, deleting: useless, by: .relay), as: operations.new())
    }

    private let operations = Operations(
        key: Secret(Array(repeating: 1, count: 32)), randomness: SystemRandomness())

    private func withStore(_ engine: Engine, _ body: (Store) async throws -> Void) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        try await body(store)
    }

    @Test(arguments: Engine.allCases) func numberIsGivenOnce(engine: Engine) async throws {
        try await withStore(engine) { store in
            let first = try await roll(key(1, [1]), on: store)
            #expect(first.isDone && first.keys == [key(1, [1])])
            // Another relay makes a key with the same number, and a late one with a lower number.
            for number: Int64 in [1, 0] {
                let second = try await roll(key(number, [2]), on: store)
                #expect(!second.isDone && second.keys == [key(1, [1])])
            }
            let third = try await roll(key(2, [3]), on: store)
            #expect(third.isDone && third.keys == [key(1, [1]), key(2, [3])])
        }
    }

    @Test(arguments: Engine.allCases) func onlyTheMakerOfAKeyDeletesOldOnes(engine: Engine) async throws {
        try await withStore(engine) { store in
            for number in 1...8 as ClosedRange<Int64> {
                _ = try await roll(key(number, [UInt8(number)]), on: store)
            }
            let late = now + .seconds(7200)
            #expect(try await roll(key(8, [9], at: late), on: store).keys.map(\.era.number) == Array(1...8))
            // The last eight stay, however late it is.
            #expect(try await roll(key(9, [9], at: late), on: store).keys.map(\.era.number) == Array(2...9))
            #expect(
                try await roll(key(10, [1], at: late), replacesAll: true, on: store).keys.map(\.era.number) == [10])
        }
    }

    @Test(arguments: Engine.allCases) func rowThatChangedIsNotDeletedAsUseless(engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await roll(key(1, [1]), on: store)
            let kept = try await roll(key(2, [2]), deleting: [key(1, [7])], on: store)
            #expect(kept.keys.map(\.era.number) == [1, 2])
            let left = try await roll(key(3, [3]), deleting: [key(1, [1])], on: store)
            #expect(left.keys.map(\.era.number) == [2, 3])
        }
    }

    @Test(arguments: Engine.allCases) func keyIsSealedAgainOnlyFromWhatWasRead(engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await roll(key(1, [1]), on: store)
            try await store.reseal(key(1, [2]), from: [9])
            #expect(try await store.rollingKeys(.nonces) == [key(1, [1])])
            try await store.reseal(key(1, [2]), from: [1])
            #expect(try await store.rollingKeys(.nonces) == [key(1, [2])])
        }
    }
}
