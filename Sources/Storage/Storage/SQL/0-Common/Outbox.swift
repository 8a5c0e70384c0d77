import Domain
import Relay
import World

/// The outbox entries of a challenge.
enum OutboxRows {
    /// The condition for entries that are deleted with their challenge. Webhooks stay, because the
    /// website is still notified of the end and its effects.
    static let exceptWebhooks = "kind <> '\(WebhookRows.kind)'"
}

/// The outbox entries of codes that are sent, which several verbs write.
enum CodeEntries {
    /// Writes the outbox entry of a code, records its counter in `sent_code`, and increments the
    /// factor's counter. The statements must follow the audit row of the change. They write nothing
    /// without that row, if the counter has changed, or if the newest step of the challenge says
    /// that this factor was refused.
    ///
    /// - Parameter noted: the id of the audit row, if it is not the operation's.
    static func insert(_ code: CodeToSend, as operation: Operation, noted: OperationID? = nil) -> [BoundStatement] {
        [
            insertCode(
                entry: .id(code.id), challenge: .id(code.challenge), language: .text(code.language),
                now: .timestamp(code.at), expiresAt: .timestamp(code.expiresAt),
                leasedUntil: .timestamp(code.leasedUntil), relay: .id(code.holder), factor: .id(code.factor),
                counter: .integer(code.counter), operation: .id(noted ?? operation.id)),
            noteCounter(entry: .id(code.id)),
            moveCounter(factor: .id(code.factor), counter: .integer(code.counter), entry: .id(code.id)),
        ]
    }

    private static let insertCode = Statement(
        into: .outbox,
        """
        INSERT INTO outbox (id, kind, user_id, challenge_id, factor_id, counter, address, language, created_at,
        expires_at, due_at, attempts, holder)
        SELECT :entry, f.kind, f.user_id, :challenge, f.id, f.counter, f.address, coalesce(:language, u.language), :now,
        :expiresAt, :leasedUntil, 0, :relay
        FROM factor f JOIN user u ON u.id = f.user_id
        WHERE f.id = :factor AND f.kind IN ('mail', 'sms') AND f.counter = :counter AND f.address IS NOT NULL
        AND \(Guards.audited)
        AND NOT EXISTS (SELECT 1 FROM step s WHERE s.challenge_id = :challenge AND s.factor = f.kind
        AND s.state = 'refused'
        AND s.ordinal = (SELECT max(n.ordinal) FROM step n WHERE n.challenge_id = s.challenge_id))
        """)

    private static let noteCounter = Statement(
        into: .sentCode, once: true,
        """
        INSERT INTO sent_code (factor_id, counter, challenge_id, sent_at, expires_at)
        SELECT o.factor_id, o.counter, o.challenge_id, o.created_at, o.expires_at FROM outbox o WHERE o.id = :entry
        """)

    private static let moveCounter = Statement(
        """
        UPDATE factor SET counter = counter + 1
        WHERE id = :factor AND counter = :counter AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = :entry)
        """)

    /// The rows that `insert` writes. The outbox entry copies the address from the factor's row.
    static func rows(_ code: CodeToSend) -> [SignedRows] {
        [
            .factor(code.factor).signed, .entry(code.id).signed, .sentCode(of: code.factor, code.counter).signed,
        ]
    }
}
