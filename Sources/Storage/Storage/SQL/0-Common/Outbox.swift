import Domain
import Relay
import World

/// The outbox entries that several verbs write.
enum OutboxRows {
    /// The condition for entries that are deleted with their challenge. Webhooks stay, because the
    /// website is still notified of the end and its effects.
    static let exceptWebhooks = " kind <> '\(WebhookRows.kind)'"

    /// Writes the outbox entry of a code, records its counter in `sent_code`, and increments the
    /// factor's counter. The statements must follow the audit row of the change. They write nothing
    /// without that row, if the counter has changed, or if the newest step of the challenge says
    /// that this factor was refused.
    ///
    /// - Parameter noted: the id of the audit row, if it is not the operation's.
    static func code(_ code: CodeToSend, as operation: Operation, noted: OperationID? = nil) -> [BoundStatement] {
        let id = SQLValue.id(code.id)
        let counter = SQLValue.integer(code.counter)
        return [
            BoundStatement(
                insertCode, id, .id(code.challenge), .text(code.language), .timestamp(code.at),
                .timestamp(code.expiresAt),
                .timestamp(code.leasedUntil), .id(code.holder), .id(code.factor), counter, .id(noted ?? operation.id),
                .id(code.challenge)),
            BoundStatement(noteCounter, id),
            BoundStatement(moveCounter, .id(code.factor), counter, id),
        ]
    }

    /// The rows that `code` writes. The outbox entry copies the address from the factor's row.
    static func rows(_ code: CodeToSend) -> [SignedRows] {
        [
            .factor(code.factor).signed, .entry(code.id).signed, .sentCode(of: code.factor, code.counter).signed,
        ]
    }
}

private let insertCode = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, user_id, challenge_id, factor_id, counter, address, language, created_at, expires_at,
    due_at, attempts, holder)
    SELECT ?, f.kind, f.user_id, ?, f.id, f.counter, f.address, coalesce(u.language, ?), ?, ?, ?, 0, ?
    FROM factor f JOIN user u ON u.id = f.user_id
    WHERE f.id = ? AND f.kind IN ('mail', 'sms') AND f.counter = ? AND f.address IS NOT NULL
    AND EXISTS (SELECT 1 FROM audit WHERE operation = ?)
    AND NOT EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = ? AND s.factor = f.kind AND s.state = 'refused'
    AND s.ordinal = (SELECT max(n.ordinal) FROM step n WHERE n.challenge_id = s.challenge_id))
    """)

private let noteCounter = Statement(
    into: .sentCode, once: true,
    """
    INSERT INTO sent_code (factor_id, counter, challenge_id, sent_at, expires_at)
    SELECT o.factor_id, o.counter, o.challenge_id, o.created_at, o.expires_at FROM outbox o WHERE o.id = ?
    """)

private let moveCounter = Statement(
    """
    UPDATE factor SET counter = counter + 1
    WHERE id = ? AND counter = ? AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = ?)
    """)
