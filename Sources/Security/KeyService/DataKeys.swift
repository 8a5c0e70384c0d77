import Bytes
import Crypto
import JSON
import Relay

/// The keys that a relay works with. They are derived from the master keys, which cannot be
/// computed from them.
public struct DataKeys: Sendable {
    /// The keys that seal and open, the newest first.
    public let sealing: [Sealer.Key]
    /// The keys that sign the rows of the store, one for each sealing key.
    public let signing: [Secret]
    public let relay: RelayKeys

    public init(sealing: [Sealer.Key], signing: [Secret], relay: RelayKeys) {
        precondition(sealing.count == signing.count, "each master key gives one key of both kinds")
        self.sealing = sealing
        self.signing = signing.map { $0.locked() }
        self.relay = relay
    }

    public func sealer() throws(CryptoFailure) -> Sealer { try Sealer(keys: sealing) }

    /// The length of every derived key.
    private static let keyBytes = 32

    /// The ids of the sealing keys, in the order of the keys in `appendBytes`.
    var list: JSONObject {
        [
            "sealing": .array(
                sealing.map { key in
                    .object(["id": .string(key.id), "next": .bool(key.isNext)])
                })
        ]
    }

    /// The number of bytes of all keys together.
    var count: Int { (2 * sealing.count + 2) * Self.keyBytes }

    /// Appends all sealing keys, then the keys that sign rows, then the key for ids of operations
    /// and the key for nonces of proofs. The caller wipes the array.
    func appendBytes(to bytes: inout [UInt8]) {
        for key in sealing.map(\.key) + signing + [relay.operations, relay.proofs] {
            key.withBytes { bytes.append(contentsOf: $0) }
        }
    }

    init(list: JSONObject, bytes: Secret) throws(KeyServiceFailure) {
        guard let names = list["sealing"]?.array, bytes.count == (2 * names.count + 2) * Self.keyBytes else {
            throw .malformed("the key service listed another number of keys than it sent")
        }
        let keys = bytes.withBytes { buffer in
            (0..<2 * names.count + 2).map { index in
                let range = index * Self.keyBytes..<(index + 1) * Self.keyBytes
                return Secret(locking: UnsafeRawBufferPointer(rebasing: buffer[range]))
            }
        }
        var sealing: [Sealer.Key] = []
        for (name, key) in zip(names, keys) {
            guard let id = name.object?["id"]?.string, let isNext = name.object?["next"]?.bool else {
                throw .malformed("the key service sent a key without an id")
            }
            sealing.append(Sealer.Key(id: id, key: key, isNext: isNext))
        }
        self.init(
            sealing: sealing, signing: Array(keys[names.count..<2 * names.count]),
            relay: RelayKeys(operations: keys[2 * names.count], proofs: keys[2 * names.count + 1]))
    }
}
