import Bytes
import Crypto
import Testing

/// Seals that can be found: equal values have equal seals.
@Suite struct SearchableSealTests {
    private let old = Sealer.Key(id: "old", key: Secret([UInt8](repeating: 1, count: 32)))
    private let new = Sealer.Key(id: "new", key: Secret([UInt8](repeating: 2, count: 32)))
    private let value = Array("ada@example.com".utf8)
    private let purpose = Array("address".utf8)

    @Test func equalValuesHaveEqualSealsThatOpen() throws {
        let sealer = try Sealer(keys: [new, old])
        let sealed = try sealer.sealSearchably(value, associated: purpose)
        #expect(try sealer.sealSearchably(value, associated: purpose) == sealed)
        #expect(try sealer.open(sealed, associated: purpose) == value)
        #expect(try Sealer.keyID(of: sealed) == "new")
        #expect(throws: SealFailure.tampered) { try sealer.open(sealed, associated: Array("token".utf8)) }
    }

    /// A nonce that two values share would reveal both.
    @Test func otherValuesPurposesAndKeysHaveOtherNonces() throws {
        let sealer = try Sealer(keys: [new, old])
        let nonces = try [
            sealer.sealSearchably(value, associated: purpose),
            sealer.sealSearchably(value + [0x21], associated: purpose),
            sealer.sealSearchably([0x21] + value, associated: Array(purpose.dropLast())),
            // The same bytes, divided otherwise between purpose and value.
            sealer.sealSearchably(purpose + value, associated: []),
            sealer.sealSearchably(value, associated: Array("token".utf8)),
            Sealer(keys: [old]).sealSearchably(value, associated: purpose),
        ].map { sealed in
            Array(sealed.dropFirst(Sealer.beginning(underKey: try Sealer.keyID(of: sealed)).count).prefix(12))
        }
        #expect(Set(nonces).count == nonces.count)
    }

    @Test func searchFindsAValueUnderEveryKey() throws {
        let future = Sealer.Key(id: "future", key: Secret([UInt8](repeating: 3, count: 32)), isNext: true)
        let seals = try Sealer(keys: [future, new, old]).searchableSeals(of: value, associated: purpose)
        #expect(try seals.map { try Sealer.keyID(of: $0) } == ["future", "new", "old"])
        for key in [Sealer.Key(id: "future", key: future.key), new, old] {
            #expect(seals.contains(try Sealer(keys: [key]).sealSearchably(value, associated: purpose)))
        }
    }
}
