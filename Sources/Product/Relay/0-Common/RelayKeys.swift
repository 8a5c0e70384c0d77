import Bytes
import Crypto
import Domain

/// The keys from which the relay derives ids and nonces. Both are derived from the master key. The
/// relay itself does not need the master key, so another process may hold it.
public struct RelayKeys: Sendable {
    /// The key from which the ids of operations are derived.
    public let operations: Secret
    /// The key that authenticates the nonces of DPoP proofs.
    public let proofs: Secret
    /// The installation's epoch; empty if its store was never restored from a copy.
    public private(set) var epoch: [UInt8] = []
    /// The key that signs the links in mails with which people see their accounts. No message of a
    /// nonce is as short as this label.
    var accountLinks: Secret { Secret(HMAC.sha256(key: proofs, Array("twoefay account links".utf8))) }

    public init(operations: Secret, proofs: Secret) {
        self.operations = operations.locked()
        self.proofs = proofs.locked()
    }

    public init(masterKey: Secret) {
        self.init(operations: Operations.key(from: masterKey), proofs: Nonces.key(from: masterKey))
    }

    /// Returns the keys for an epoch. What was derived from the keys of another epoch is refused.
    public func bound(to epoch: [UInt8]) -> RelayKeys {
        guard !epoch.isEmpty else { return self }
        func key(_ key: Secret) -> Secret {
            Secret(HMAC.sha256(key: key, Array("twoefay epoch".utf8) + epoch))
        }
        var keys = RelayKeys(operations: key(operations), proofs: key(proofs))
        keys.epoch = epoch
        return keys
    }
}
