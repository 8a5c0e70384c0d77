import Domain
import World

/// The outbox entries that notify websites and users of account events. They are written with the
/// change itself.
enum AccountEventRows {
    /// The time for which the relay retries a mail.
    static let life = Duration.seconds(24 * 3600)

    /// Writes the entries of an account event. The statements must follow the change's audit row.
    /// Websites without a webhook endpoint get no entry. Users without an address get one, so that
    /// the relay counts that they were not told.
    ///
    /// - Parameters:
    ///   - challenge: the challenge whose end the website is notified of before this event.
    ///   - event: the event that the audit row must have; nil if any is sufficient.
    ///   - noted: the id of the audit row, if it is not the operation's.
    static func steps(
        _ announcement: AccountEvent, user: UserID, device: DeviceID?, challenge: ChallengeID? = nil,
        after event: String? = nil, at now: Timestamp, as operation: Operation, noted: OperationID? = nil
    ) -> [BoundStatement] {
        let audited = SQLValue.id(noted ?? operation.id)
        return webhook(
            announcement, user: user, device: device, challenge: challenge, after: event, at: now, as: operation,
            noted: noted) + [
                notifyUser(
                    entry: .id(id(of: announcement, "mail", operation)), event: .word(announcement),
                    device: .id(device), now: .timestamp(now), expiresAt: .timestamp(now + life), user: .id(user),
                    operation: audited, auditEvent: .text(event),
                    language: .text(operation.languages.message(stored: nil)))
            ]
    }

    /// Writes the entry for the website alone.
    static func webhook(
        _ announcement: AccountEvent, user: UserID, device: DeviceID? = nil, challenge: ChallengeID? = nil,
        after event: String? = nil, at now: Timestamp, as operation: Operation, noted: OperationID? = nil
    ) -> [BoundStatement] {
        [
            notifyWebsite(
                entry: .id(id(of: announcement, "webhook", operation)), event: .word(announcement),
                device: .id(device), now: .timestamp(now), expiresAt: .timestamp(now + WebhookRows.life),
                challenge: .id(challenge), user: .id(user), operation: .id(noted ?? operation.id),
                auditEvent: .text(event))
        ]
    }

    private static let notifyWebsite = Statement(
        into: .outbox, once: true,
        """
        INSERT INTO outbox
        (id, kind, event, device_id, created_at, expires_at, webhook_due_at, challenge_id,
        ordinal, website_id, user_id, attempts)
        SELECT :entry, '\(WebhookRows.kind)', :event, :device, :now, :expiresAt, :now, :challenge,
        \(WebhookRows.afterEnd), w.id, u.id, 0
        FROM user u JOIN website w ON w.id = u.website_id WHERE u.id = :user AND w.webhook_url IS NOT NULL
        AND \(isAudited)
        """)

    /// Notifies the user. The address is looked up when the mail is sent, because the user may have
    /// another one by then. The languages of the request count only if the website has stored none:
    /// somebody else may have caused the event.
    private static let notifyUser = Statement(
        into: .outbox, once: true,
        """
        INSERT INTO outbox (id, kind, event, device_id, user_id, language, created_at, expires_at, due_at, attempts)
        SELECT :entry, 'mail', :event, :device, u.id, CASE WHEN u.language IS NULL THEN :language END, :now,
        :expiresAt, :now, 0 FROM user u
        WHERE u.id = :user AND \(isAudited)
        """)

    /// The condition that the audit row exists. Two equal requests at the same time are one change
    /// and cause one notification.
    private static let isAudited =
        "EXISTS (SELECT 1 FROM audit WHERE operation = :operation AND event = coalesce(:auditEvent, event))"

    /// The rows that `steps` writes. Their ids are derived from the operation, so nobody can know
    /// them in advance.
    static func rows(_ announcement: AccountEvent, as operation: Operation) -> [SignedRows] {
        ["webhook", "mail"].map { .entry(id(of: announcement, $0, operation)).signed }
    }

    private static func id(of announcement: AccountEvent, _ kind: String, _ operation: Operation) -> OutboxEntryID {
        operation.identifier("\(kind) \(announcement.rawValue)")
    }
}
