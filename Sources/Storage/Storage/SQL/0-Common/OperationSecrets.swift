import Domain
import Relay

/// The sealed secrets of repeatable operations. Each is written with the change to which it
/// belongs, and only if this run of the operation makes the change.
enum OperationSecrets {
    /// Removes the mark of the user's row if another run of this operation is already committed.
    /// This run then changes nothing, and reads the secret that the other run stored. The statement
    /// must follow the one that marked, and so locked, the row.
    static func onlyOnce(_ user: UserID, as operation: Operation) -> [BoundStatement] {
        operation.isRepeatable ? [unmarkDone(user: .id(user), operation: .id(operation))] : []
    }

    private static let unmarkDone = Statement(
        "UPDATE user SET operation = id WHERE id = :user AND operation = :operation AND \(Guards.audited)")

    /// Stores the secret. It is part of a change that has marked its user's row, and must follow
    /// the audit row.
    static func stored(_ secret: StoredSecret?, as operation: Operation) -> [BoundStatement] {
        secret.map {
            [
                insertSecret(
                    sealed: .blob($0.sealed.bytes), key: .text($0.sealed.key), expiresAt: .timestamp($0.expiresAt),
                    operation: .id(operation))
            ]
        } ?? []
    }

    private static let insertSecret = Statement(
        """
        INSERT INTO operation_secret (operation, sealed, sealed_by, expires_at)
        SELECT a.operation, :sealed, :key, :expiresAt FROM audit a JOIN user u ON u.id = a.user_id
        WHERE a.operation = :operation AND u.operation = :operation
        \(once)
        """)

    /// Stores the secret, as part of a change that has made a phone active with this digest of its
    /// revocation code.
    static func stored(
        _ secret: StoredSecret, of device: DeviceID, revocation: [UInt8]?, as operation: Operation
    ) -> BoundStatement {
        insertSecretOfPhone(
            binding: .id(secret.operation), sealed: .blob(secret.sealed.bytes), key: .text(secret.sealed.key),
            expiresAt: .timestamp(secret.expiresAt), device: .id(device), operation: .id(operation),
            revocation: .blob(revocation))
    }

    /// The secret is stored under the operation of the binding, which may be another one than that
    /// of this change.
    private static let insertSecretOfPhone = Statement(
        """
        INSERT INTO operation_secret (operation, sealed, sealed_by, expires_at)
        SELECT :binding, :sealed, :key, :expiresAt FROM device d
        WHERE d.id = :device AND d.operation = :operation AND d.revocation = :revocation AND d.state = 'active'
        \(once)
        """)

    private static let once = """
        /*M! ON DUPLICATE KEY UPDATE operation = operation_secret.operation */ /*S! ON CONFLICT DO NOTHING */
        """

    static func read(_ operation: OperationID) -> BoundStatement { readSecret(operation: .id(operation)) }

    private static let readSecret = Statement("SELECT sealed FROM operation_secret WHERE operation = :operation")

    static func dropped(_ operation: OperationID) -> BoundStatement { dropSecret(operation: .id(operation)) }

    private static let dropSecret = Statement("DELETE FROM operation_secret WHERE operation = :operation")
}

extension Rows {
    /// The sealed secret that `OperationSecrets.read` found; nil if there is none.
    var operationSecret: [UInt8]? {
        get throws(StoreFailure) { try first?.blob("sealed") }
    }
}
