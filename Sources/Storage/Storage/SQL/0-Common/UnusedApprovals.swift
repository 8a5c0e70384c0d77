import Domain
import Relay

/// Ends all that an approval could still make active, when the phone or factor that may have
/// approved it is no longer trusted.
enum UnusedApprovals {
    /// Deletes waiting phones except `device`. Deletes unused activation codes and waiting factors
    /// that were approved by the user. Marks unused approvals as used. It is part of a change, and
    /// has no effect unless `operation` is in the audit.
    static func ended(of user: UserID, but device: DeviceID?, by operation: SQLValue) -> [BoundStatement] {
        [
            BoundStatement(dropWaiting, .id(user), .id(device), operation),
            BoundStatement(dropApproved, .id(user), operation),
            BoundStatement(dropWaitingFactors, .id(user), operation),
            BoundStatement(spend, operation, .id(user), operation),
        ]
    }

    /// The rows from which `ended` takes a right: approvals, used or not.
    static func rows(of user: UserID) -> [SignedRows] { [.approvals(of: user).lenient] }
}

private let changed = " EXISTS (SELECT 1 FROM audit WHERE operation = ?)"

private let dropWaiting = Statement(
    "DELETE FROM device WHERE user_id = ? AND id <> coalesce(?, '') AND state = 'waiting' AND" + changed)

private let dropApproved = Statement(
    "DELETE FROM activation WHERE user_id = ? AND used_at IS NULL AND approval = 'user' AND" + changed)

private let dropWaitingFactors = Statement(
    "DELETE FROM factor WHERE user_id = ? AND state = 'waiting' AND approval IS NOT NULL AND" + changed)

/// Marks an approval as used, because an approval can be used only once.
private let spend = Statement(
    """
    UPDATE challenge SET used_by = ?
    WHERE user_id = ? AND approves IS NOT NULL AND decision = 'approve' AND used_by IS NULL AND
    """ + changed)
