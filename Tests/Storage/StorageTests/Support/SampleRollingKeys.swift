import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Makes keys by their schedule and at once, and seals one again.
    static func runRollingKeys(on store: Store, as operation: () -> Domain.Operation) async throws {
        func key(_ number: Int64) -> SealedRollingKey {
            let era = KeyEra(
                kind: .nonces, number: number, madeAt: now, startsAt: now, endsAt: now + .seconds(86_400))
            return SealedRollingKey(era: era, sealed: [UInt8(number)], sealedBy: "key")
        }
        for (number, replacesAll) in [(Int64(1), false), (2, true)] {
            let roll = KeyRoll(key(number), replacesAll: replacesAll, deleting: [key(9)], by: .relay)
            _ = try await store.roll(roll, as: operation())
        }
        try await store.reseal(key(2), from: [2])
        _ = try await store.rollingKeys(.nonces)
        _ = try await store.run(KeyUse.rolling)
    }
}
