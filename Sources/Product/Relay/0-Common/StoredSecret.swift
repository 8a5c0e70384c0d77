import Bytes
import Crypto
import Domain
import Log
import World

/// The secret of an operation that may be repeated, sealed, as it is stored in the transaction of the change.
///
/// The row is read back by the same transaction, and the answer is always made of what was read: if two relays run one
/// operation at once, the change of one of them is done, its secret is stored, and both answer with that one.
public struct StoredSecret: Sendable {
    /// The operation under which it is found again.
    public let operation: OperationID
    public let sealed: SealedSecret
    /// Repetitions end then, and the row is dropped.
    public let expiresAt: Timestamp

    public init(operation: OperationID, sealed: SealedSecret, expiresAt: Timestamp) {
        self.operation = operation
        self.sealed = sealed
        self.expiresAt = expiresAt
    }
}

extension Relay {
    func drawSecret() -> OperationSecret { OperationSecret(drawnFrom: randomness) }

    /// The secret as it has to be stored with the change; nil if nobody can repeat the operation. It is kept as long as
    /// the answer to a request under an Idempotency-Key is, and is dropped before if that answer was given.
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

    /// The secret that the answer is made of: of a repeatable operation the one that the store has. An operation that
    /// was carried out and whose secret is not stored any more was answered before, or its time is over.
    func settled(
        _ drawn: OperationSecret, for use: OperationSecret.Use, of operation: Operation, found sealed: [UInt8]?
    ) throws(Refusal) -> OperationSecret {
        guard operation.isRepeatable else { return drawn }
        guard let sealed else { throw .shownOnce }
        return try opened(sealed, for: use, of: operation.id)
    }

    /// A secret that was stored for another use is not opened.
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
