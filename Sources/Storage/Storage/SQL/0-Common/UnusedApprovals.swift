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
            dropWaitingPhones(user: .id(user), device: .id(device), operation: operation),
            AttestationRows.dropOrphans(of: user),
            dropActivations(user: .id(user), operation: operation),
            dropWaitingFactors(user: .id(user), operation: operation),
            useAll(operation: operation, user: .id(user)),
            Recoveries.ended(of: user, by: operation),
        ]
    }

    private static let dropWaitingPhones = Statement(
        """
        DELETE FROM device WHERE user_id = :user AND id <> coalesce(:device, '') AND state = 'waiting'
        AND \(Guards.audited)
        """)

    private static let dropActivations = Statement(
        """
        DELETE FROM activation WHERE user_id = :user AND used_at IS NULL AND approval = 'user'
        AND \(Guards.audited)
        """)

    private static let dropWaitingFactors = Statement(
        """
        DELETE FROM factor WHERE user_id = :user AND state = 'waiting' AND approval IS NOT NULL
        AND \(Guards.audited)
        """)

    /// Marks approvals as used, because an approval can be used only once.
    private static let useAll = Statement(
        """
        UPDATE challenge SET used_by = :operation
        WHERE user_id = :user AND approves IS NOT NULL AND decision = 'approve' AND used_by IS NULL
        AND \(Guards.audited)
        """)

    /// The rows from which `ended` takes a right: approvals, used or not.
    static func rows(of user: UserID) -> [SignedRows] { [.approvals(of: user).lenient] }
}
