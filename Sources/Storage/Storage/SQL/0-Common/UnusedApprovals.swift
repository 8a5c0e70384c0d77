import Domain
import Relay
import World

/// Ends all that an approval could still make active, when the phone or factor that may have
/// approved it is no longer trusted.
enum UnusedApprovals {
    /// Deletes waiting phones except `device`. Deletes unused activation codes and waiting factors
    /// that were approved by the user. Marks unused approvals as used, and ends open recoveries. It
    /// is part of a change, and has no effect unless `noted` is in the audit.
    ///
    /// - Parameters:
    ///   - reason: why the recoveries end.
    ///   - isSparing: whether recoveries stay that no phone has proved or approved.
    ///   - noted: the id of the audit row, if it is not the operation's.
    static func ended(
        of user: UserID, but device: DeviceID?, because reason: RecoveryEndReason, isSparing: Bool = false,
        at now: Timestamp, as operation: Operation, noted: OperationID? = nil
    ) -> [BoundStatement] {
        let audited = noted ?? operation.id
        let (person, mark) = (SQLValue.id(user), SQLValue.id(audited))
        return Recoveries.ended(
            of: user, because: reason, isSparing: isSparing, at: now, noted: audited, as: operation
        ) + [
            dropWaitingPhones(user: person, device: .id(device), operation: mark),
            AttestationRows.dropOrphans(of: user), WebPhoneRows.dropOrphans(of: user),
            dropActivations(user: person, operation: mark),
            dropWaitingFactors(user: person, operation: mark),
            useAll(operation: mark, user: person),
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
        AND NOT EXISTS (SELECT 1 FROM recovery r WHERE r.id = factor.approval AND r.state = 'proved')
        AND \(Guards.audited)
        """)

    /// Marks approvals as used, because an approval can be used only once.
    private static let useAll = Statement(
        """
        UPDATE challenge SET used_by = :operation
        WHERE user_id = :user AND approves IS NOT NULL AND decision = 'approve' AND used_by IS NULL
        AND \(Guards.audited)
        """)

    /// The rows that `ended` writes: approvals, used or not, which lose a right, and the entry about
    /// ended recoveries.
    static func rows(of user: UserID, at now: Timestamp, as operation: Operation) -> [SignedRows] {
        [.approvals(of: user).lenient] + Recoveries.rowsOfEnd(of: user, at: now, as: operation)
    }
}
