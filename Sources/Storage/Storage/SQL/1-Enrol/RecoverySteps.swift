import Domain
import Relay
import World

// MARK: The second proof

extension Recoveries {
    /// Stores the second proof, and announces the change to the addresses and the phones. Other
    /// recoveries of the same factor end. They did not end before, because a link alone proves
    /// nothing.
    public static func proved(_ proving: RecoveryProving, as operation: Operation) -> Query<Bool> {
        let row = proving.recovery
        let (user, own, id, now) = (
            SQLValue.id(row.user), SQLValue.id(operation), SQLValue.id(row.id), SQLValue.timestamp(proving.at)
        )
        var writes = [
            Locks.hold(user: user),
            markUser(operation: own, user: user, recovery: id, before: .id(row.operation), now: now),
        ]
        writes += OperationSecrets.onlyOnce(row.user, as: operation)
        if let approved = proving.approved {
            writes += Approvals.required(approved, of: row.user, at: proving.at, as: operation)
        }
        writes += [
            prove(
                proof: .word(proving.proof), now: now, readyAt: .timestamp(proving.life.readyAt),
                announcedAt: .timestamp(proving.life.announcedAt), expiresAt: .timestamp(proving.life.expiresAt),
                cancel: .blob(proving.cancel),
                challenge: .id(proving.announcement?.challenge), operation: own, recovery: id, user: user),
            auditRecovery(
                operation: own, now: now, event: .text("recovery.proved"), outcome: .word(proving.proof),
                note: .text(proving.note), recovery: id, own: own),
        ]
        writes += continued(by: row, at: proving.at, as: operation)
        writes += AccountEventRows.webhook(.recoveryWaiting, user: row.user, at: proving.at, as: operation)
        for (index, mail) in proving.mails.enumerated() {
            writes += self.mail(
                mail, about: row.id, of: row.user, besides: index > 0 ? row.address : nil, at: proving.at, as: operation
            )
        }
        if let announcement = proving.announcement {
            writes.append(entry(announcement, of: row, at: proving.at, as: operation))
        }
        var rows: [SignedRows] = [.user(row.user).signed, .recovery(row.id).signed]
        if let approved = proving.approved { rows.append(.challenge(approved.challenge).signed) }
        rows +=
            AccountEventRows.rows(.recoveryWaiting, as: operation)
            + rowsOfEnd(of: row.user, at: proving.at, as: operation)
        rows += proving.mails.map { .entry($0.entry).signed }
        if let announcement = proving.announcement { rows.append(.entry(announcement.entry).signed) }
        return Query(change: Change("prove recovery", operation, rows: rows, writes)) { rows in rows.happened }
    }

    private static let markUser = Statement(
        """
        UPDATE user SET operation = :operation WHERE id = :user AND \(Guards.userMayLogIn) AND EXISTS
        (SELECT 1 FROM recovery r WHERE r.id = :recovery AND r.user_id = user.id AND r.operation = :before
        AND r.state = 'opened' AND r.expires_at > :now)
        """)

    private static let prove = Statement(
        """
        UPDATE recovery SET state = 'proved', proof = :proof, proved_at = :now, ready_at = :readyAt,
        announced_at = :announcedAt, expires_at = :expiresAt, cancel = :cancel, challenge_id = :challenge, operation = :operation
        WHERE id = :recovery AND user_id = :user AND \(Guards.userMarked)
        """)

    /// Writes the entry by which a relay asks the phones, if the user has one that can decide.
    private static func entry(
        _ announcement: RecoveryAnnouncement, of row: RecoveryRow, at now: Timestamp, as operation: Operation
    ) -> BoundStatement {
        insertEntry(
            entry: .id(announcement.entry), challenge: .id(announcement.challenge), now: .timestamp(now),
            dueAt: .timestamp(announcement.dueAt), relay: .id(announcement.holder), recovery: .id(row.id),
            operation: .id(operation))
    }

    private static let insertEntry = Statement(
        into: .outbox, once: true,
        """
        INSERT INTO outbox (id, kind, user_id, challenge_id, created_at, due_at, attempts, holder)
        SELECT :entry, 'recovery', r.user_id, :challenge, :now, :dueAt, 0, :relay FROM recovery r
        WHERE r.id = :recovery AND r.operation = :operation AND EXISTS (SELECT 1 FROM device d
        WHERE d.user_id = r.user_id AND d.state = 'active' AND d.public_key IS NOT NULL)
        """)
}

// MARK: The announcement

extension Recoveries {
    /// Stores that a mail server has accepted an announcement. The wait begins with the first one,
    /// so a second one changes nothing. It is part of the change that settles the mail.
    static func announced(_ change: AnnouncedChange, as operation: Operation) -> BoundStatement {
        announce(
            announcedAt: .timestamp(change.life.announcedAt), readyAt: .timestamp(change.life.readyAt),
            expiresAt: .timestamp(change.life.expiresAt), recovery: .id(change.recovery), operation: .id(operation))
    }

    private static let announce = Statement(
        """
        UPDATE recovery SET announced_at = :announcedAt, ready_at = :readyAt, expires_at = :expiresAt
        WHERE id = :recovery AND state = 'proved' AND announced_at IS NULL AND expires_at > :announcedAt
        AND \(Guards.audited)
        """)
}

// MARK: The phones

extension Recoveries {
    static func asked(_ asking: RecoveryAsking, as operation: Operation) -> Query<Bool> {
        let row = asking.recovery
        var writes = [
            Locks.hold(user: .id(row.user)),
            ask(
                challenge: .id(asking.challenge), operation: .id(operation), recovery: .id(row.id),
                before: .id(row.operation), now: .timestamp(asking.at)),
            auditRecovery(
                operation: .id(operation), now: .timestamp(asking.at), event: .text("recovery.asked"),
                outcome: .null, note: .null, recovery: .id(row.id), own: .id(operation)),
        ]
        var rows: [SignedRows] = [.user(row.user), .recovery(row.id).signed]
        if let announcement = asking.entry {
            writes.append(entry(announcement, of: row, at: asking.at, as: operation))
            rows.append(.entry(announcement.entry).signed)
        }
        return Query(change: Change("ask", operation, rows: rows, writes)) { rows in rows.happened }
    }

    private static let ask = Statement(
        """
        UPDATE recovery SET challenge_id = :challenge, operation = :operation
        WHERE id = :recovery AND operation = :before AND state IN ('opened', 'proved') AND expires_at > :now
        """)

    /// The effect of a phone's answer on the recovery that it is about. An approval ends the wait,
    /// except that of the phones themselves: one of them may be in a thief's hands. A denial cancels
    /// the recovery. It is part of the change that ends the challenge.
    static func answered(_ closing: ChallengeEnd, as operation: Operation) -> [BoundStatement] {
        guard closing.isApproval, let phone = closing.device else { return [] }
        let (challenge, now) = (SQLValue.id(closing.challenge), SQLValue.timestamp(closing.at))
        switch closing.life.decision {
        case .approve:
            let own: OperationID = operation.identifier("recovery.approved")
            return [
                approve(now: now, own: .id(own), challenge: challenge, operation: .id(operation)),
                auditAnswered(
                    own: .id(own), now: now, event: .text("recovery.approved"), device: .id(phone.id),
                    challenge: challenge, user: .id(phone.user)),
            ]
        case .deny, .fraud:
            // A report of fraud also ends the others, in an audit row with the other id.
            let own = operation.denialOfRecovery
            return [
                deny(
                    own: .id(own), challenge: challenge, recovery: .id(closing.deniedRecovery), user: .id(phone.user),
                    operation: .id(operation)),
                auditAnswered(
                    own: .id(own), now: now, event: .word(AccountEvent.recoveryCancelled), device: .id(phone.id),
                    challenge: challenge, user: .id(phone.user)),
            ] + cancelled(of: phone.user, at: closing.at, own: own, as: operation)
        case nil: return []
        }
    }

    static func rows(answeredBy closing: ChallengeEnd, as operation: Operation) -> [SignedRows] {
        guard closing.isApproval, let phone = closing.device else { return [] }
        switch closing.life.decision {
        case .approve: return [.recovery(asked: closing.challenge).signed]
        case .deny, .fraud: return rowsOfEnd(of: phone.user, at: closing.at, as: operation)
        case nil: return []
        }
    }

    private static let approve = Statement(
        """
        UPDATE recovery SET ready_at = CASE WHEN ready_at > :now THEN :now ELSE ready_at END,
        announced_at = coalesce(announced_at, :now), operation = :own
        WHERE challenge_id = :challenge AND state = 'proved' AND factor <> 'push' AND \(Guards.challengeWritten)
        """)

    private static let deny = Statement(
        """
        UPDATE recovery SET state = 'cancelled', stopped_by = 'phone', operation = :own
        WHERE user_id = :user AND (challenge_id = :challenge OR id = :recovery) AND state IN ('opened', 'proved')
        AND \(Guards.challengeWritten)
        """)

    private static let auditAnswered = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
        SELECT :own, :now, :event, u.website_id, u.id, :challenge, :device, r.factor
        FROM recovery r JOIN user u ON u.id = r.user_id WHERE r.user_id = :user AND r.operation = :own
        \(Audit.once)
        """)
}
