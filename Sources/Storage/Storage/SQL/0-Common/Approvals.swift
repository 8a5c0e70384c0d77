import Domain
import Relay
import World

/// Statements that use a user's approval, which permits one change once.
enum Approvals {
    /// Uses the approval, as part of a change that has marked the user's row. If the approval
    /// cannot be used, the row loses the mark, and no later statement of the change has an effect.
    /// While a user is locked, frozen, disabled or expired, no approval is used.
    static func required(
        _ approved: Approved, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            useApproval(
                operation: .id(operation), challenge: .id(approved.challenge), digest: .blob(approved.digest),
                user: .id(user), now: .timestamp(now)),
            unmarkUser(user: .id(user), operation: .id(operation), challenge: .id(approved.challenge)),
        ]
    }

    private static let useApproval = Statement(
        """
        UPDATE challenge SET used_by = :operation
        WHERE id = :challenge AND approves = :digest AND decision = 'approve' AND used_by IS NULL AND EXISTS
        (SELECT 1 FROM user u WHERE u.id = :user AND u.id = challenge.user_id AND u.operation = :operation
        AND \(Guards.mayLogIn))
        """)

    private static let unmarkUser = Statement(
        """
        UPDATE user SET operation = id WHERE id = :user AND operation = :operation AND NOT EXISTS
        (SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.used_by = :operation)
        """)
}
