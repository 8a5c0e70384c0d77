import Domain
import Relay
import World

/// The rows of recovery codes, with a digest each. One row of the table `factor` represents all of
/// them.
enum RecoveryRows {
    /// Writes the new codes, for a user whose row this operation has marked, and deletes those of
    /// the sets that the new factor replaces. The statements must follow those of the factor.
    ///
    /// A set that counts at once also replaces one that waits to be typed back. Otherwise that
    /// older set could replace it later. The wrong codes stay counted for the user.
    static func replaced(_ enrolling: FactorEnrolment, as operation: Operation) -> [BoundStatement] {
        guard !enrolling.codes.isEmpty else { return [] }
        let user = SQLValue.id(enrolling.factor.user)
        let waiting = enrolling.factor.state == .active ? [dropWaiting(user: user, operation: .id(operation))] : []
        return waiting + [dropOrphansOfMarked(user: user, operation: .id(operation))]
            + enrolling.codes.enumerated().map { index, digest in
                insertCode(
                    digest: .blob(digest), factor: .id(enrolling.factor.id), position: .integer(Int64(index + 1)),
                    user: user, operation: .id(operation))
            }
    }

    private static let dropWaiting = Statement(
        "DELETE FROM factor WHERE user_id = :user AND kind = 'recovery' AND state = 'waiting' AND \(Guards.userMarked)")

    private static let dropOrphansOfMarked = Statement("\(dropOrphanCodes) AND \(Guards.userMarked)")

    /// Deletes the codes of sets whose factor is gone, after the audit row.
    static func orphansDropped(_ user: UserID, as operation: Operation) -> BoundStatement {
        dropOrphans(user: .id(user), operation: .id(operation))
    }

    private static let dropOrphans = Statement("\(dropOrphanCodes) AND \(Guards.audited)")

    private static let dropOrphanCodes = """
        DELETE FROM recovery_code WHERE user_id = :user
        AND NOT EXISTS (SELECT 1 FROM factor f WHERE f.id = recovery_code.factor_id)
        """

    private static let insertCode = Statement(
        into: .recoveryCode, once: true,
        """
        INSERT INTO recovery_code (user_id, digest, factor_id, position)
        SELECT u.id, :digest, :factor, :position FROM user u WHERE u.id = :user AND u.operation = :operation
        """)

    /// The rows that `replaced` writes.
    static func rows(_ enrolling: FactorEnrolment) -> [SignedRows] {
        enrolling.codes.map { .recoveryCode($0, of: enrolling.factor.user).signed }
    }

    /// Activates the user by an unused recovery code of the active set `factor`, unless an operator
    /// has locked the user or codes are locked. The script must rely on the rows of the code and
    /// the set.
    ///
    /// - Parameter failures: the user's failure count as it was read.
    static func activate(
        _ user: UserID, by digest: [UInt8], of factor: FactorID, failures: Int, as operation: Operation
    ) -> BoundStatement {
        activateByCode(
            operation: .id(operation), user: .id(user), failures: .integer(Int64(failures)), digest: .blob(digest),
            factor: .id(factor))
    }

    private static let activateByCode = Statement(
        """
        UPDATE user SET state = 'active', stopped_by = NULL, operation = :operation
        WHERE id = :user AND state IN ('locked', 'frozen') AND coalesce(stopped_by, '') <> 'operator'
        AND codes_locked_at IS NULL AND code_failures = :failures
        AND EXISTS (SELECT 1 FROM recovery_code r JOIN factor f ON f.id = r.factor_id
        WHERE r.user_id = user.id AND r.digest = :digest AND r.factor_id = :factor AND r.used_at IS NULL
        AND f.state = 'active')
        """)

    /// Marks the code as used, as part of a change that has marked the user's row.
    static func used(_ digest: [UInt8], of user: UserID, at now: Timestamp, as operation: Operation) -> BoundStatement {
        useCode(now: .timestamp(now), user: .id(user), digest: .blob(digest), operation: .id(operation))
    }

    private static let useCode = Statement(
        """
        UPDATE recovery_code SET used_at = :now WHERE user_id = :user AND digest = :digest AND used_at IS NULL
        AND \(Guards.userMarked)
        """)

    static func dropped(_ user: UserID, as operation: Operation) -> BoundStatement {
        dropAll(user: .id(user), operation: .id(operation))
    }

    private static let dropAll = Statement("DELETE FROM recovery_code WHERE user_id = :user AND \(Guards.audited)")
}
