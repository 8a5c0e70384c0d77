import Bytes
import Domain

/// The keys from which the relay makes ids and nonces. Both are derived from the master key, which
/// the relay itself does not need: another process may hold that one.
public struct RelayKeys: Sendable {
    /// The key of the ids of operations.
    public let operations: Secret
    /// The key of the nonces of proofs.
    public let proofs: Secret

    public init(operations: Secret, proofs: Secret) {
        self.operations = operations.locked()
        self.proofs = proofs.locked()
    }

    public init(masterKey: Secret) {
        self.init(operations: Operations.key(from: masterKey), proofs: Nonces.key(from: masterKey))
    }
}
