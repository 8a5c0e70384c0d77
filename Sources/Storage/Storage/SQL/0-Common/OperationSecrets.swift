import Domain
import Relay

/// The sealed secrets of repeatable operations. Each is written with the change to which it
/// belongs, and only if this run of the operation makes the change.
enum OperationSecrets {
    /// Removes the mark of the user's row if another run of this operation is already committed.
    /// This run then changes nothing, and reads the secret that the other run stored. The statement
    /// must follow the one that marked, and so locked, the row.
    static func onlyOnce(_ user: UserID, as operation: Operation) -> [BoundStatement] {
        operation.isRepeatable ? [BoundStatement(unmarkDone, .id(user), .id(operation), .id(operation))] : []
    }

    /// Stores the secret. It is part of a change that has marked its user's row, and must follow
    /// the audit row.
    static func stored(_ secret: StoredSecret?, as operation: Operation) -> [BoundStatement] {
        secret.map { [BoundStatement(insertSecret, values: $0.values + [.id(operation), .id(operation)])] } ?? []
    }

    /// Stores the secret, as part of a change that has made a phone active with this digest of its
    /// revocation code.
    static func stored(
        _ secret: StoredSecret, of device: DeviceID, revocation: [UInt8]?, as operation: Operation
    ) -> BoundStatement {
        BoundStatement(
            insertSecretOfPhone,
            values: [.id(secret.operation)] + secret.values + [.id(device), .id(operation), .blob(revocation)])
    }

    static func read(_ operation: OperationID) -> BoundStatement { BoundStatement(readSecret, .id(operation)) }

    static func dropped(_ operation: OperationID) -> BoundStatement { BoundStatement(dropSecret, .id(operation)) }
}

extension StoredSecret {
    fileprivate var values: [SQLValue] { [.blob(sealed.bytes), .text(sealed.key), .timestamp(expiresAt)] }
}

extension Rows {
    /// The sealed secret that `OperationSecrets.read` found; nil if there is none.
    var operationSecret: [UInt8]? {
        get throws(StoreFailure) { try first?.blob(0) }
    }
}

private let unmarkDone = Statement(
    """
    UPDATE user SET operation = id WHERE id = ? AND operation = ? AND EXISTS
    (SELECT 1 FROM audit a WHERE a.operation = ?)
    """)

private let insertion = "INSERT INTO operation_secret (operation, sealed, sealed_by, expires_at)"
private let once = """
     /*M! ON DUPLICATE KEY UPDATE operation = operation_secret.operation */ /*S! ON CONFLICT DO NOTHING */
    """

private let insertSecret = Statement(
    insertion + """
         SELECT a.operation, ?, ?, ? FROM audit a JOIN user u ON u.id = a.user_id
        WHERE a.operation = ? AND u.operation = ?
        """ + once)

private let insertSecretOfPhone = Statement(
    insertion + """
         SELECT ?, ?, ?, ? FROM device d
        WHERE d.id = ? AND d.operation = ? AND d.revocation = ? AND d.state = 'active'
        """ + once)

private let readSecret = Statement("SELECT sealed FROM operation_secret WHERE operation = ?")
private let dropSecret = Statement("DELETE FROM operation_secret WHERE operation = ?")
