import Domain
import Relay
import World

extension Phones {
    /// Changes a phone. The answer has the challenges that ended with the change; it is nil if the
    /// guards refused the change.
    public static func change(_ change: DeviceChange, as operation: Operation) -> Query<[ChallengeID]?> {
        var writes = [
            markUser(operation: .id(operation), user: .id(change.user)),
            changed(change, as: operation),
            auditDevice(
                operation: .id(operation), now: .timestamp(change.at), event: .text("\(change.event)"),
                changes: .text(change.changes.text), author: .word(change.by), device: .id(change.device)),
        ]
        writes += CertificateRows.steps(change, as: operation)
        if change.state == .revoked { writes.append(DeviceReports.dropped(of: change.device, as: operation)) }
        if change.state == .revoked, !change.isOfUnbound {
            writes.append(TaggedCertificates.dropped(with: change.device, as: operation))
        }
        if change.isUnbinding {
            writes += PhoneCodeRows.dropped(with: change.device, of: change.user, at: change.at, as: operation)
        }
        if change.isUnbinding { writes += farewell(change, as: operation) }
        if change.state == .revoked, !change.isOfUnbound {
            writes += AccountEventRows.steps(
                .deviceUnbound, user: change.user, device: change.device, after: "\(change.event)", at: change.at,
                as: operation)
        }
        let reads = [endedApprovals(user: .id(change.user), operation: .id(operation))]
        let rows = rows(of: change, as: operation)
        return Query(change: Change("device", operation, rows: rows, writes, reads: reads)) {
            rows throws(StoreFailure) in
            guard rows.happened else { return nil }
            var ended: [ChallengeID] = []
            for row in rows[1] { ended.append(try row.id("id")) }
            return ended
        }
    }

    /// Locks the user's row, so that changes of a user's phones run one after the other.
    private static let markUser = Statement("UPDATE user SET operation = :operation WHERE id = :user")

    /// Audits the change. A phone with an approval is waiting, or was waiting until this change.
    /// Nobody was notified that it was bound, so its event is `device.withdrawn`.
    private static let auditDevice = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
        SELECT :operation, :now, CASE WHEN d.approval IS NULL THEN :event ELSE 'device.withdrawn' END,
        u.website_id, u.id, d.id, :author
        FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device AND d.operation = :operation
        \(Audit.once)
        """)

    private static let endedApprovals = Statement("SELECT c.id FROM challenge c WHERE \(isEndedApproval)")

    /// The condition for the approvals `c` that this operation has ended.
    private static let isEndedApproval = "c.user_id = :user AND c.approves IS NOT NULL AND c.operation = :operation"

    /// The rows that a change of a phone writes. A phone can be stopped even if its row is not
    /// genuine. The user's row comes first, because other changes of the user wait for it.
    private static func rows(of change: DeviceChange, as operation: Operation) -> [SignedRows] {
        let (user, device) = (SignedRows.user(change.user), SignedRows.device(change.device))
        guard change.state == .revoked || change.state == .suspended else { return [user.signed, device.signed] }
        var rows = [user.lenient, device.lenient]
        if change.isUnbinding {
            rows += Locks.rows(ending: change.user, at: change.at, as: operation)
            rows += UnusedApprovals.rows(of: change.user, at: change.at, as: operation)
        }
        return change.state == .revoked ? rows + AccountEventRows.rows(.deviceUnbound, as: operation) : rows
    }
}

/// The phone's own row.
extension Phones {
    private static func changed(_ change: DeviceChange, as operation: Operation) -> BoundStatement {
        let givesBack = change.isOfUnbound && change.state == .active
        let undoesOperator = change.isOfUnbound ? givesBack : change.by == .operator || change.state != .active
        return changeDevice.bound(
            [
                "name": .text(change.name), "pushToken": .pushToken(change.pushToken),
                "pushTokenAt": change.pushToken == nil ? .null : .timestamp(change.at),
                "isActive": .bool(change.state == .active),
                "stoppedBy": .word(change.isUnbinding || change.isOfUnbound ? change.by : nil),
                "state": .word(change.isOfUnbound ? nil : change.state), "isVerified": .bool(change.isVerified),
                "operation": .id(operation),
                "device": .id(change.device), "undoesOperator": .bool(undoesOperator), "givesBack": .bool(givesBack),
                "user": .id(change.user),
            ], lists: ["from": change.from.map { .word($0) }])
    }

    /// Changes the phone. An unbound key stays unbound, and only an operator resumes a phone that
    /// an operator stopped.
    private static let changeDevice = Statement(
        """
        UPDATE device SET name = coalesce(:name, name), push_token = coalesce(:pushToken, push_token),
        push_token_at = coalesce(:pushTokenAt, push_token_at), stopped_by = CASE WHEN :isActive = 1 THEN NULL
        WHEN stopped_by = 'operator' THEN stopped_by ELSE coalesce(:stoppedBy, stopped_by) END,
        state = coalesce(:state, state), verify_since = CASE WHEN :isVerified = 0 THEN verify_since END,
        operation = :operation
        WHERE id = :device AND state IN (:from1, :from2, :from3) AND (state <> 'revoked' OR public_key IS NULL)
        AND (:undoesOperator = 1 OR coalesce(stopped_by, '') <> 'operator')
        AND (:givesBack = 0 OR stopped_by = 'operator') AND EXISTS
        (SELECT 1 FROM user u WHERE u.id = :user AND u.id = device.user_id AND u.operation = :operation)
        """)
}

/// The end of all that a stopped phone could still do.
extension Phones {
    /// Deletes the phone's pushes, and ends all approvals and waiting phones that it may have
    /// approved. Somebody who had the phone must not keep access with another one.
    private static func farewell(_ change: DeviceChange, as operation: Operation) -> [BoundStatement] {
        [
            dropPushes(user: .id(change.user), device: .id(change.device), operation: .id(operation))
        ] + approvalsEnded(of: change.user, but: change.device, at: change.at, as: operation)
    }

    /// Gives up pushes that nobody gets any more, and ends all approvals and what they approved. It
    /// is part of a change that `operation` has put into the audit.
    ///
    /// - Parameter isSparing: whether recoveries stay that no phone has proved or approved.
    static func approvalsEnded(
        of user: UserID, but device: DeviceID, isSparing: Bool = false, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            Steps.giveUpPushes(to: user, at: now, by: operation),
            CascadeSteps.makeDue(of: user, at: now, by: operation),
            endApprovals(now: .timestamp(now), operation: .id(operation), user: .id(user)),
            Steps.skip(of: user, at: now, by: operation),
            dropEntriesOfApprovals(user: .id(user), operation: .id(operation)),
            LoginDecidedRows.insertLoginDecided(of: user, at: now, as: operation),
            Locks.auditEnded(user, .cancelled, at: now, as: operation),
        ] + UnusedApprovals.ended(of: user, but: device, because: .phone, isSparing: isSparing, at: now, as: operation)
    }

    private static let dropPushes = Statement(
        """
        DELETE /*M! o */ FROM outbox
        /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE c.user_id = :user AND c.decided_at IS NULL
        AND o.device_id = :device */
        /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE c.user_id = :user AND c.decided_at IS NULL)
        AND device_id = :device */
        AND \(Guards.audited)
        """)

    /// Cancels open approvals. Expired challenges keep the result `expired`, which was already
    /// reported.
    private static let endApprovals = Statement(
        """
        UPDATE challenge SET state = 'cancelled', reason = 'cancelled', decided_at = :now, operation = :operation
        WHERE user_id = :user AND decided_at IS NULL AND approves IS NOT NULL AND expires_at > :now
        AND \(Guards.audited)
        """)

    private static let dropEntriesOfApprovals = Statement(
        """
        DELETE /*M! o */ FROM outbox
        /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
        /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
        \(isEndedApproval) /*S! ) */ AND \(OutboxRows.exceptWebhooks)
        """)
}
