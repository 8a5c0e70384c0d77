import Domain
import Relay

/// Statements that use a user's approval, which permits one change once.
enum Approvals {
    /// Uses the approval, as part of a change that has marked the user's row. While a user is
    /// locked or frozen, no approval is used.
    static func use(_ approved: Approved, of user: UserID, as operation: Operation) -> BoundStatement {
        BoundStatement(
            useApproval, .id(operation), .id(approved.challenge), .blob(approved.digest), .id(user), .id(operation))
    }
}

extension Approvals {
    /// Uses the approval, and removes the mark of the user's row if the approval cannot be used.
    /// Then no later statement of the change has an effect.
    static func required(_ approved: Approved, of user: UserID, as operation: Operation) -> [BoundStatement] {
        [
            use(approved, of: user, as: operation),
            BoundStatement(unmarkUser, .id(user), .id(operation), .id(approved.challenge), .id(operation)),
        ]
    }
}

private let unmarkUser = Statement(
    """
    UPDATE user SET operation = id WHERE id = ? AND operation = ? AND NOT EXISTS
    (SELECT 1 FROM challenge c WHERE c.id = ? AND c.used_by = ?)
    """)

private let useApproval = Statement(
    """
    UPDATE challenge SET used_by = ?
    WHERE id = ? AND approves = ? AND decision = 'approve' AND used_by IS NULL AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = ? AND u.id = challenge.user_id AND u.operation = ? AND u.state = 'active')
    """)
