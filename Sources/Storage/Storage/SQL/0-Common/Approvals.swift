import Domain
import Relay

/// What a user has approved of is done once with each approval.
enum Approvals {
    /// Part of a change that has marked the user's row. While a user is locked or frozen no approval is used.
    static func use(_ approved: Approved, of user: UserID, as operation: Operation) -> BoundStatement {
        BoundStatement(
            useApproval, .id(operation), .id(approved.challenge), .blob(approved.digest), .id(user), .id(operation))
    }
}

extension Approvals {
    /// The same, and where it could not be used nothing that follows is done: the user's row is marked no more.
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
