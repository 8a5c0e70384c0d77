import Domain
import Relay
import World

/// The rows of recovery codes: a digest each. A row of the table `factor` stands for all of them.
enum RecoveryRows {
    /// The new codes in the place of all earlier ones, once the factor has been written.
    static func replaced(_ enrolling: Enrolling, as operation: Operation) -> [Step] {
        guard !enrolling.codes.isEmpty else { return [] }
        let factor: [SQLValue] = [.id(enrolling.factor.id), .id(operation)]
        return [Step(dropEarlier, values: [.id(enrolling.factor.user)] + factor)]
            + enrolling.codes.map { Step(insertCode, values: [.blob($0)] + factor) }
    }

    /// By a code that is not used yet, unless an operator has locked the user.
    static func activate(_ user: UserID, by digest: [UInt8], as operation: Operation) -> Step {
        Step(activateByCode, .id(operation), .id(user), .blob(digest))
    }

    /// Part of a change that has marked the user's row.
    static func used(_ digest: [UInt8], of user: UserID, at now: Timestamp, as operation: Operation) -> Step {
        Step(useCode, .moment(now), .id(user), .blob(digest), .id(user), .id(operation))
    }

    static func dropped(_ user: UserID, as operation: Operation) -> Step {
        Step(dropAll, .id(user), .id(operation))
    }
}

private let dropEarlier = Statement(
    "DELETE FROM recovery_code WHERE user_id = ? AND EXISTS (SELECT 1 FROM factor f WHERE f.id = ? AND f.operation = ?)"
)

private let insertCode = Statement(
    """
    INSERT INTO recovery_code (user_id, digest)
    SELECT f.user_id, ? FROM factor f WHERE f.id = ? AND f.operation = ?
    /*M! ON DUPLICATE KEY UPDATE digest = recovery_code.digest */ /*S! ON CONFLICT DO NOTHING */
    """)

private let activateByCode = Statement(
    """
    UPDATE user SET state = 'active', stopped_by = NULL, operation = ?
    WHERE id = ? AND state IN ('locked', 'frozen') AND coalesce(stopped_by, '') <> 'operator'
    AND EXISTS (SELECT 1 FROM recovery_code r WHERE r.user_id = user.id AND r.digest = ? AND r.used_at IS NULL)
    """)

private let useCode = Statement(
    """
    UPDATE recovery_code SET used_at = ? WHERE user_id = ? AND digest = ? AND used_at IS NULL
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = ? AND u.operation = ?)
    """)

private let dropAll = Statement(
    "DELETE FROM recovery_code WHERE user_id = ? AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)")
