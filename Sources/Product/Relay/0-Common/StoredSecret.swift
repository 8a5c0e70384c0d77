import Bytes
import Crypto
import Domain
import Log
import World

/// The sealed secret of an operation that may be repeated. It is stored in the transaction of the
/// operation's change.
///
/// A website may repeat a request because it never saw the answer. The answer contains a secret,
/// such as an activation code, and a repetition must return the same one. But secrets are random
/// and must not follow from the operation's id. So the first run draws a secret, and stores it
/// sealed with the change. Every run makes its answer from the stored secret.
///
/// Invariant: the transaction that writes the secret also reads it, and the answer is always made
/// from the secret that was read. If two relays run one operation at the same time, only one of the
/// changes takes effect. Only its secret is stored, and both relays answer with it.
///
/// Failure modes: an attacker with write access to the store exchanges sealed secrets. The
/// associated data names the operation, the verb, the user and the website, so an exchanged secret
/// does not open. If the secret is no longer stored, the operation was answered before or its time
/// is over, and the refusal is `shownOnce`.
///
/// Tested in `RepeatedSecretTests.swift` and `SealedSecretTests.swift`.
public struct StoredSecret: Sendable {
    /// The operation to which the secret belongs; the key of its row.
    public let operation: OperationID
    public let sealed: SealedSecret
    /// When repetitions end and the row is deleted.
    public let expiresAt: Timestamp

    public init(operation: OperationID, sealed: SealedSecret, expiresAt: Timestamp) {
        self.operation = operation
        self.sealed = sealed
        self.expiresAt = expiresAt
    }
}

extension Relay {
    func drawSecret() -> OperationSecret { OperationSecret(drawnFrom: randomness) }

    /// Returns the sealed secret to be stored with the change; nil if the operation cannot be
    /// repeated. It is stored as long as the answer to a request under an Idempotency-Key. It is
    /// deleted earlier once that answer was given.
    func stored(
        _ secret: OperationSecret, for use: OperationSecret.Use, of operation: Operation, at now: Timestamp
    ) throws(Refusal) -> StoredSecret? {
        guard operation.isRepeatable else { return nil }
        let expiresAt = (operation.begunAt ?? now) + Self.keptFor
        return try stored(secret, for: use, of: operation.id, until: expiresAt)
    }

    func stored(
        _ secret: OperationSecret, for use: OperationSecret.Use, of operation: OperationID,
        until expiresAt: Timestamp
    ) throws(Refusal) -> StoredSecret {
        let (sealer, bytes) = (sealer, secret.reveal())
        do {
            let sealed = try sealer.seal(bytes, associated: use.associated(operation), randomness: randomness)
            return StoredSecret(
                operation: operation, sealed: SealedSecret(bytes: sealed, key: sealer.currentID), expiresAt: expiresAt)
        } catch {
            log.error("operation.seal", [.operation: operation.text, .error: "\(error)"])
            throw .broken
        }
    }

    /// Returns the secret from which the answer is made. For a repeatable operation, that is the
    /// stored one. If it is no longer stored, the operation was answered before, or its time is
    /// over.
    func settled(
        _ drawn: OperationSecret, for use: OperationSecret.Use, of operation: Operation, found sealed: [UInt8]?
    ) throws(Refusal) -> OperationSecret {
        guard operation.isRepeatable else { return drawn }
        guard let sealed else { throw .shownOnce }
        return try opened(sealed, for: use, of: operation.id)
    }

    /// Opens a stored secret. A secret that was stored for another use cannot be opened.
    func opened(
        _ sealed: [UInt8], for use: OperationSecret.Use, of operation: OperationID
    ) throws(Refusal) -> OperationSecret {
        guard let bytes = try? sealer.open(sealed, associated: use.associated(operation)),
            let secret = OperationSecret(bytes)
        else {
            log.error("operation.sealed", [.operation: operation.text])
            throw .broken
        }
        return secret
    }
}
