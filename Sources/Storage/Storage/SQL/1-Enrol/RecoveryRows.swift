import Domain
import Relay
import World

/// The rows of recovery codes, with a digest each. One row of the table `factor` represents all of
/// them.
enum RecoveryRows {
    /// Replaces all earlier codes by the new ones, for a user whose row this operation has marked.
    static func replaced(_ enrolling: FactorEnrolment, as operation: Operation) -> [BoundStatement] {
        guard !enrolling.codes.isEmpty else { return [] }
        let marked: [SQLValue] = [.id(enrolling.factor.user), .id(operation)]
        return [BoundStatement(dropEarlier, values: [.id(enrolling.factor.user)] + marked)]
            + enrolling.codes.map { BoundStatement(insertCode, values: [.blob($0)] + marked) }
    }

    /// The rows that `replaced` writes.
    static func rows(_ enrolling: FactorEnrolment) -> [SignedRows] {
        enrolling.codes.map { .recoveryCode($0, of: enrolling.factor.user).signed }
    }

    /// Activates the user by an unused recovery code, unless an operator has locked the user or
    /// codes are locked.
    ///
    /// - Parameter failures: the user's failure count as it was read.
    static func activate(_ user: UserID, by digest: [UInt8], failures: Int, as operation: Operation) -> BoundStatement {
        BoundStatement(activateByCode, .id(operation), .id(user), .integer(Int64(failures)), .blob(digest))
    }

    /// Marks the code as used, as part of a change that has marked the user's row.
    static func used(_ digest: [UInt8], of user: UserID, at now: Timestamp, as operation: Operation) -> BoundStatement {
        BoundStatement(useCode, .timestamp(now), .id(user), .blob(digest), .id(user), .id(operation))
    }

    static func dropped(_ user: UserID, as operation: Operation) -> BoundStatement {
        BoundStatement(dropAll, .id(user), .id(operation))
    }
}

private let dropEarlier = Statement(
    "DELETE FROM recovery_code WHERE user_id = ? AND EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)"
)

private let insertCode = Statement(
    into: .recoveryCode, once: true,
    """
    INSERT INTO recovery_code (user_id, digest)
    SELECT u.id, ? FROM user u WHERE u.id = ? AND u.operation = ?
    """)

private let activateByCode = Statement(
    """
    UPDATE user SET state = 'active', stopped_by = NULL, operation = ?
    WHERE id = ? AND state IN ('locked', 'frozen') AND coalesce(stopped_by, '') <> 'operator'
    AND codes_locked_at IS NULL AND code_failures = ?
    AND EXISTS (SELECT 1 FROM recovery_code r WHERE r.user_id = user.id AND r.digest = ? AND r.used_at IS NULL)
    """)

private let useCode = Statement(
    """
    UPDATE recovery_code SET used_at = ? WHERE user_id = ? AND digest = ? AND used_at IS NULL
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)
    """)

private let dropAll = Statement(
    "DELETE FROM recovery_code WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
