import Bytes
import Domain

/// The keys from which the relay derives ids and nonces. Both are derived from the master key. The
/// relay itself does not need the master key, so another process may hold it.
public struct RelayKeys: Sendable {
    /// The key from which the ids of operations are derived.
    public let operations: Secret
    /// The key that authenticates the nonces of DPoP proofs.
    public let proofs: Secret

    public init(operations: Secret, proofs: Secret) {
        self.operations = operations.locked()
        self.proofs = proofs.locked()
    }

    public init(masterKey: Secret) {
        self.init(operations: Operations.key(from: masterKey), proofs: Nonces.key(from: masterKey))
    }
}
