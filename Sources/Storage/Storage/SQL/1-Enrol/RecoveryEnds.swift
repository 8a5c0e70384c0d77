import Domain
import Relay
import World

// MARK: Ends

extension Recoveries {
    /// Cancels a recovery, with the factor or activation that it has created so far.
    public static func cancel(_ cancelling: RecoveryCancelling, as operation: Operation) -> Query<Bool> {
        let (user, own) = (SQLValue.id(cancelling.user), SQLValue.id(operation))
        let change = Change(
            "cancel recovery", operation, rows: rowsOfEnd(of: cancelling.user, at: cancelling.at, as: operation),
            [
                Locks.hold(user: user),
                cancel(
                    author: .word(cancelling.by), operation: own, recovery: .id(cancelling.recovery), user: user,
                    now: .timestamp(cancelling.at)),
                auditRecovery(
                    operation: own, now: .timestamp(cancelling.at), event: .word(AccountEvent.recoveryCancelled),
                    outcome: .null, note: .word(cancelling.by), recovery: .id(cancelling.recovery), own: own),
            ] + cancelled(of: cancelling.user, at: cancelling.at, own: operation.id, as: operation))
        return Query(change: change) { rows in rows.happened }
    }

    private static let cancel = Statement(
        """
        UPDATE recovery SET state = 'cancelled', stopped_by = :author, operation = :operation
        WHERE id = :recovery AND user_id = :user AND state IN ('sent', 'opened', 'proved') AND expires_at > :now
        """)

    /// Cancels all recoveries of a factor, for an operator who does not know which one is whose.
    public static func cancelAll(
        of user: UserID, _ factor: Factor, by author: ChangeAuthor, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let (person, own) = (SQLValue.id(user), SQLValue.id(operation))
        let change = Change(
            "cancel recoveries", operation, rows: rowsOfEnd(of: user, at: now, as: operation),
            [
                Locks.hold(user: person),
                cancelOfFactor(
                    author: .word(author), operation: own, factor: .word(factor), user: person, now: .timestamp(now)),
                auditEnded(own: own, now: .timestamp(now), user: person, note: .word(author)),
            ] + cancelled(of: user, at: now, own: operation.id, as: operation))
        return Query(change: change) { rows in rows.happened }
    }

    private static let cancelOfFactor = Statement(
        """
        UPDATE recovery SET state = 'cancelled', stopped_by = :author, operation = :operation
        WHERE user_id = :user AND factor = :factor AND state IN ('sent', 'opened', 'proved') AND expires_at > :now
        """)

    /// Drops what a cancelled recovery has created, with its mails, and reports its end. The row of
    /// the recovery and an audit row have the mark `own`.
    static func cancelled(
        of user: UserID, at now: Timestamp, own: OperationID, as operation: Operation
    ) -> [BoundStatement] {
        voided(of: user, at: now, own: own)
            + AccountEventRows.steps(
                .recoveryCancelled, user: user, device: nil, at: now, as: operation, noted: own)
    }

    /// The rows that lose a right by the end of recoveries, and the entries about it.
    static func rowsOfEnd(of user: UserID, at now: Timestamp, as operation: Operation) -> [SignedRows] {
        [.recoveries(of: user).lenient, .activations(of: user, at: now).lenient]
            + AccountEventRows.rows(.recoveryCancelled, as: operation)
    }

    /// Drops what the recoveries with the mark `own` have created, and their mails. The links in
    /// these would no longer work.
    private static func voided(of user: UserID, at now: Timestamp, own: OperationID) -> [BoundStatement] {
        [
            dropFactor(user: .id(user), own: .id(own)),
            voidActivations(now: .timestamp(now), user: .id(user), own: .id(own)),
            dropSecrets(user: .id(user), own: .id(own)),
            dropMails(user: .id(user), own: .id(own)),
        ]
    }

    private static let dropFactor = Statement(
        """
        DELETE FROM factor WHERE user_id = :user AND state = 'waiting' AND approval IN
        (SELECT r.id FROM recovery r WHERE r.user_id = :user AND r.operation = :own)
        """)

    private static let voidActivations = Statement(
        """
        UPDATE activation SET used_at = :now WHERE user_id = :user AND used_at IS NULL AND recovery_id IN
        (SELECT r.id FROM recovery r WHERE r.user_id = :user AND r.operation = :own)
        """)

    private static let dropSecrets = Statement(
        """
        DELETE /*M! s */ FROM operation_secret
        /*M! AS s JOIN outbox o ON o.id = s.operation WHERE */
        /*S! WHERE operation IN (SELECT o.id FROM outbox o WHERE */
        o.user_id = :user AND o.kind = 'mail' AND o.recovery_id IN
        (SELECT r.id FROM recovery r WHERE r.user_id = :user AND r.operation = :own) /*S! ) */
        """)

    private static let dropMails = Statement(
        """
        DELETE FROM outbox WHERE user_id = :user AND kind = 'mail' AND recovery_id IN
        (SELECT r.id FROM recovery r WHERE r.user_id = :user AND r.operation = :own)
        """)

    static func ending(_ event: AccountEvent, _ operation: Operation) -> OperationID {
        operation.identifier("own \(event.rawValue)")
    }

    /// Cancels what was proved while a factor or address could still be trusted, with what it has
    /// created, and notifies the website. The user did what ended the recovery, or is notified of
    /// that, and gets no mail.
    ///
    /// - Parameters:
    ///   - isSparing: whether only recoveries end that are about phones, or that a phone has
    ///     proved or approved.
    ///   - noted: the id of the audit row of the change.
    static func ended(
        of user: UserID, because reason: RecoveryEndReason, isSparing: Bool = false, at now: Timestamp,
        noted: OperationID, as operation: Operation
    ) -> [BoundStatement] {
        let end = isSparing ? endOfPhones : endOpen
        return [
            end(
                own: .id(operation.endOfRecoveries), user: .id(user), now: .timestamp(now), operation: .id(noted))
        ] + reported(reason, of: user, at: now, as: operation)
    }

    /// Ends the other recoveries of the factor, as part of the change that has proved this one.
    static func continued(by row: RecoveryRow, at now: Timestamp, as operation: Operation) -> [BoundStatement] {
        [
            endContinued(
                own: .id(operation.endOfRecoveries), user: .id(row.user), factor: .word(row.factor),
                recovery: .id(row.id), now: .timestamp(now), operation: .id(operation))
        ] + reported(.continued, of: row.user, at: now, as: operation)
    }

    private static func reported(
        _ reason: RecoveryEndReason, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let own = operation.endOfRecoveries
        return [
            auditEnded(own: .id(own), now: .timestamp(now), user: .id(user), note: .word(reason))
        ] + voided(of: user, at: now, own: own)
            + AccountEventRows.webhook(.recoveryCancelled, user: user, at: now, as: operation, noted: own)
    }

    private static let endOpen = Statement("\(ending) AND \(Guards.audited)")

    private static let endOfPhones = Statement(
        """
        \(ending) AND (factor = 'push' OR coalesce(proof, '') = 'phone' OR EXISTS (SELECT 1 FROM challenge c
        WHERE c.id = recovery.challenge_id AND c.decision = 'approve' AND c.device_id IS NOT NULL))
        AND \(Guards.audited)
        """)

    private static let endContinued = Statement(
        """
        UPDATE recovery SET state = 'cancelled', stopped_by = 'relay', operation = :own
        WHERE user_id = :user AND factor = :factor AND id <> :recovery AND state IN ('opened', 'proved')
        AND expires_at > :now AND \(Guards.userMarked)
        """)

    private static let ending = """
        UPDATE recovery SET state = 'cancelled', stopped_by = 'relay', operation = :own
        WHERE user_id = :user AND state IN ('sent', 'opened', 'proved') AND expires_at > :now
        """

    /// Audits each end. The first row has the mark, and each other one the id of its recovery,
    /// because a recovery ends once.
    private static let auditEnded = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT CASE r.id WHEN (SELECT min(f.id) FROM recovery f WHERE f.user_id = :user AND f.operation = :own)
        THEN :own ELSE r.id END, :now, 'recovery.cancelled', u.website_id, u.id, r.factor
        FROM recovery r JOIN user u ON u.id = r.user_id WHERE r.user_id = :user AND r.operation = :own
        \(Audit.once)
        """)
}

// MARK: The change

extension Recoveries {
    /// Removes the mark of the user's row unless the recovery is ready for this factor.
    static func required(
        _ use: RecoveryUse?, of user: UserID, _ factor: Factor, as operation: Operation
    ) -> [BoundStatement] {
        use.map {
            [
                unmarkUnready(
                    user: .id(user), operation: .id(operation), recovery: .id($0.recovery), before: .id($0.operation),
                    factor: .word(factor), now: .timestamp($0.at))
            ]
        } ?? []
    }

    private static let unmarkUnready = Statement(
        """
        \(TakenAddresses.unmarkIf) NOT EXISTS
        (SELECT 1 FROM recovery r WHERE r.id = :recovery AND r.user_id = user.id AND r.operation = :before
        AND r.factor = :factor AND r.state = 'proved' AND r.ready_at <= :now AND r.announced_at IS NOT NULL
        AND r.expires_at > :now)
        """)

    static func rows(_ use: RecoveryUse?, as operation: Operation) -> [SignedRows] {
        use.map {
            [.recovery($0.recovery).signed] + AccountEventRows.rows(.recoveryDone, as: operation)
        } ?? []
    }

    /// Ends a recovery whose new factor this change has stored.
    static func finished(
        _ use: RecoveryUse?, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        guard let use else { return [] }
        let own = ending(.recoveryDone, operation)
        return [finish(own: .id(own), recovery: .id(use.recovery), user: .id(user), operation: .id(operation))]
            + reported(own, of: user, at: now, as: operation)
    }

    private static let finish = Statement(
        """
        UPDATE recovery SET state = 'done', operation = :own
        WHERE id = :recovery AND user_id = :user AND state = 'proved' AND \(Guards.audited)
        """)

    /// Ends the recovery to which this factor belongs, after its first code. It is part of a change
    /// that `operation` has put into the audit.
    static func finished(
        by factor: FactorID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let own = ending(.recoveryDone, operation)
        return [finishByFactor(own: .id(own), user: .id(user), factor: .id(factor), operation: .id(operation))]
            + reported(own, of: user, at: now, as: operation)
    }

    private static let finishByFactor = Statement(
        """
        UPDATE recovery SET state = 'done', operation = :own WHERE user_id = :user AND state = 'proved'
        AND id = (SELECT f.approval FROM factor f WHERE f.id = :factor) AND \(Guards.audited)
        """)

    static func rows(finishedBy factor: FactorID, as operation: Operation) -> [SignedRows] {
        [.recovery(of: factor).signed] + AccountEventRows.rows(.recoveryDone, as: operation)
    }

    private static func reported(
        _ own: OperationID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [auditDone(own: .id(own), now: .timestamp(now), user: .id(user))]
            + AccountEventRows.steps(.recoveryDone, user: user, device: nil, at: now, as: operation, noted: own)
    }

    private static let auditDone = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
        SELECT :own, :now, 'recovery.done', u.website_id, u.id, r.factor FROM recovery r JOIN user u ON u.id = r.user_id
        WHERE r.user_id = :user AND r.operation = :own
        \(Audit.once)
        """)
}

// MARK: Lost phones

extension Recoveries {
    /// Unbinds all other phones of the user, as part of the change that has bound the phone by
    /// which they are replaced. No moment exists in which both are valid.
    static func phonesReplaced(
        by device: DeviceID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let own = ending(.recoveryDone, operation)
        let (person, phone, time, change) = (
            SQLValue.id(user), SQLValue.id(device), SQLValue.timestamp(now), SQLValue.id(operation)
        )
        return [
            finishPhones(own: .id(own), user: person, operation: change),
            auditUnbound(now: time, user: person, device: phone, operation: change),
            unbindOthers(user: person, device: phone, operation: change),
            CertificateRows.revokeOfOthers(now: time, user: person, device: phone, operation: change),
            TaggedCertificates.droppedOfOthers(than: device, of: user, as: operation),
            dropPushesToOthers(user: person, device: phone, operation: change),
            DeviceReports.droppedOfOthers(than: device, of: user, as: operation),
        ] + PhoneCodeRows.droppedOfOthers(than: device, of: user, at: now, as: operation)
            + Phones.approvalsEnded(of: user, but: device, isSparing: true, at: now, as: operation)
            + reported(own, of: user, at: now, as: operation)
    }

    private static let finishPhones = Statement(
        """
        UPDATE recovery SET state = 'done', operation = :own
        WHERE user_id = :user AND factor = 'push' AND state = 'proved' AND \(Guards.audited)
        """)

    /// Audits each phone that is unbound. The row has the phone's id as its operation, because a
    /// phone is unbound for good.
    private static let auditUnbound = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
        SELECT d.id, :now, CASE WHEN d.approval IS NULL THEN 'device.unbound' ELSE 'device.withdrawn' END, u.website_id,
        u.id, d.id, 'code' FROM device d JOIN user u ON u.id = d.user_id
        WHERE d.user_id = :user AND d.id <> :device AND d.state <> 'revoked' AND \(Guards.audited)
        \(Audit.once)
        """)

    private static let unbindOthers = Statement(
        """
        UPDATE device SET state = 'revoked', stopped_by = coalesce(stopped_by, 'code'), push_token = '',
        operation = :operation WHERE user_id = :user AND id <> :device AND state <> 'revoked' AND \(Guards.audited)
        """)

    private static let dropPushesToOthers = Statement(
        """
        DELETE /*M! o */ FROM outbox
        /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE c.user_id = :user AND c.decided_at IS NULL
        AND o.device_id <> :device */
        /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE c.user_id = :user AND c.decided_at IS NULL)
        AND device_id <> :device */
        AND \(Guards.audited)
        """)

    /// The rows that `phonesReplaced` writes.
    static func rows(replacingPhonesOf user: UserID, at now: Timestamp, as operation: Operation) -> [SignedRows] {
        [.devices(of: user).lenient, .recoveriesOfPhones(of: user).signed]
            + Locks.rows(ending: user, at: now, as: operation) + UnusedApprovals.rows(of: user, at: now, as: operation)
            + AccountEventRows.rows(.recoveryDone, as: operation)
    }
}
