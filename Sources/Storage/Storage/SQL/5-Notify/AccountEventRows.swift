import Domain
import World

/// The outbox entries that notify websites and users of account events. They are written with the
/// change itself.
enum AccountEventRows {
    /// How long to keep retrying a mail.
    static let life = Duration.seconds(24 * 3600)

    /// Writes the entries of an account event. The statements must follow the change's audit row.
    /// Websites without a webhook endpoint and users without an address get no entry.
    ///
    /// - Parameters:
    ///   - challenge: the challenge whose end the website is notified of before this event.
    ///   - event: the event that the audit row must have; nil if any is sufficient.
    ///   - noted: the id of the audit row, if it is not the operation's.
    static func steps(
        _ announcement: AccountEvent, user: UserID, device: DeviceID?, challenge: ChallengeID? = nil,
        after event: String? = nil, at now: Timestamp, as operation: Operation, noted: OperationID? = nil
    ) -> [BoundStatement] {
        func values(_ kind: String, _ more: SQLValue...) -> [SQLValue] {
            let id = id(of: announcement, kind, operation)
            let audit: [SQLValue] = [.id(user), .id(noted ?? operation.id), .text(event)]
            return [.id(id), .word(announcement), .id(device), .timestamp(now)] + more + audit
        }
        return [
            BoundStatement(
                toWebsite,
                values: values("webhook", .timestamp(now + WebhookRows.life), .timestamp(now), .id(challenge))),
            BoundStatement(toUser, values: values("mail", .timestamp(now + life), .timestamp(now))),
        ]
    }

    /// The rows that `steps` writes. Their ids are derived from the operation, so nobody can know
    /// them in advance.
    static func rows(_ announcement: AccountEvent, as operation: Operation) -> [SignedRows] {
        ["webhook", "mail"].map { .entry(id(of: announcement, $0, operation)).signed }
    }

    private static func id(of announcement: AccountEvent, _ kind: String, _ operation: Operation) -> OutboxEntryID {
        operation.identifier("\(kind) \(announcement.rawValue)")
    }
}

/// The condition that the audit row exists. Two equal requests at the same time are one change and
/// cause one notification.
private let told = "AND EXISTS (SELECT 1 FROM audit WHERE operation = ? AND event = coalesce(?, event))"

private let toWebsite = Statement(
    into: .outbox, once: true,
    """
    INSERT INTO outbox (id, kind, event, device_id, created_at, expires_at, webhook_due_at, challenge_id, ordinal, website_id,
    user_id, attempts)
    SELECT ?, '\(WebhookRows.kind)', ?, ?, ?, ?, ?, ?, \(WebhookRows.afterEnd), w.id, u.id, 0
    FROM user u JOIN website w ON w.id = u.website_id WHERE u.id = ? AND w.webhook_url IS NOT NULL
    """ + " " + told)

/// Notifies the user. The address is looked up when the mail is sent, because the user may have
/// another one by then.
private let toUser = Statement(
    into: .outbox, once: true,
    """
    INSERT INTO outbox (id, kind, event, device_id, user_id, created_at, expires_at, due_at, attempts)
    SELECT ?, 'mail', ?, ?, u.id, ?, ?, ?, 0 FROM user u
    WHERE u.id = ? AND (u.email IS NOT NULL OR EXISTS
    (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.kind = 'mail' AND f.state = 'active'))
    """ + " " + told)
