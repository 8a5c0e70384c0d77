import Domain
import Relay

/// What a user has approved of, or been asked to, that is no phone yet: it ends with the trust in whoever approved.
enum UnusedApprovals {
    /// Waiting phones but this one, codes and waiting factors that rest on an approval, and approvals that nothing has used. Part of a change
    /// that `operation` has put into the audit; nothing where it has not.
    static func ended(of user: UserID, but device: DeviceID?, by operation: SQLValue) -> [BoundStatement] {
        [
            BoundStatement(dropWaiting, .id(user), .id(device), operation),
            BoundStatement(dropApproved, .id(user), operation),
            BoundStatement(dropWaitingFactors, .id(user), operation),
            BoundStatement(spend, operation, .id(user), operation),
        ]
    }

    /// The rows that `ended` takes a right from: approvals, used or not.
    static func rows(of user: UserID) -> [SignedRows] { [.approvals(of: user).lenient] }
}

private let changed = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let dropWaiting = Statement(
    "DELETE FROM device WHERE user_id = ? AND id <> coalesce(?, '') AND state = 'waiting' AND" + changed)

private let dropApproved = Statement(
    "DELETE FROM activation WHERE user_id = ? AND used_at IS NULL AND approval = 'user' AND" + changed)

private let dropWaitingFactors = Statement(
    "DELETE FROM factor WHERE user_id = ? AND state = 'waiting' AND approval IS NOT NULL AND" + changed)

/// As if it had been used: an approval is used once.
private let spend = Statement(
    """
    UPDATE challenge SET used_by = ?
    WHERE user_id = ? AND approves IS NOT NULL AND decision = 'approve' AND used_by IS NULL AND
    """ + changed)
