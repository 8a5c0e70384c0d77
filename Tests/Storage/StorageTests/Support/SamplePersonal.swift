import Bytes
import Crypto
import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Seals the personal values of all rows, and opens them again. It must precede the deletion of
    /// old rows, of which one is a mail with an address.
    static func runPersonalSealing(on store: Store, _ operation: () -> Domain.Operation) async throws {
        try await runPeople(on: store, operation)
        try await store.checkPersonalValuesAgain()
        _ = try await store.run(AddressHolders.find("user-1@example.com"))
        let sealer = try Sealer(keys: [Sealer.Key(id: "key", key: Secret(key(1)))])
        for seals in [true, false] {
            let personal = PersonalSealer(sealer, seals: seals)
            while try await store.sealSome(with: personal, by: relay, at: now) != nil {}
            _ = try await store.run(KeyUse.personal(sealedBy: "key"))
        }
    }
}
