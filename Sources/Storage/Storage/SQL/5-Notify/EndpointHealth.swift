import Domain
import Relay
import Webhooks
import World

/// The health of a webhook endpoint: its columns, how they are read, and how the attempts change it.
enum EndpointHealth {
    /// The columns of the alias `ep`.
    static let columns = """
        ep.state AS endpoint_state, ep.disabled_by AS endpoint_disabled_by, ep.disabled_at AS endpoint_disabled_at,
        ep.failing_since AS endpoint_failing_since, ep.failed_attempts AS endpoint_failed_attempts
        """

    static func read(_ row: Row) throws(StoreFailure) -> WebhookHealth {
        switch try row.text("endpoint_state") {
        case "active":
            let attempts = try row.integer("endpoint_failed_attempts")
            guard let since = try row.optionalTimestamp("endpoint_failing_since"), attempts > 0 else {
                return WebhookHealth()
            }
            return WebhookHealth(.failing(since: since, attempts: Int(attempts)))
        case "disabled":
            let reason: WebhookHealth.Reason = try row.word("endpoint_disabled_by")
            return WebhookHealth(.disabled(reason, since: try row.timestamp("endpoint_disabled_at")))
        case let other: throw .internal("column endpoint_state holds the unknown word \(other)")
        }
    }
}

// MARK: Changes by attempts

extension EndpointHealth {
    /// Counts the result of the attempt. The statements must precede those for the webhook itself.
    static func counted(_ settled: WebhookSettlement) -> [BoundStatement] {
        switch settled.tried {
        case .nothing: return []
        case .delivered: return settled.isBack ? [] : [recovered(settled.website)]
        case .failed:
            guard let (webhook, failures) = settled.effects.first?.failed else { return [] }
            return [
                countFailure(
                    now: .timestamp(settled.at), website: .id(settled.website), entry: .id(webhook),
                    relay: .id(settled.relay), failures: .integer(Int64(failures)), url: .text(settled.url))
            ]
        }
    }

    /// Counts a failure. It must precede the change of the webhook's own entry, and counts only if
    /// the entry is as it was at the attempt.
    private static let countFailure = Statement(
        """
        UPDATE webhook_endpoint SET failing_since = coalesce(failing_since, :now), failed_attempts = failed_attempts + 1
        WHERE website_id = :website AND state = 'active' AND EXISTS
        (SELECT 1 FROM outbox o WHERE o.id = :entry AND o.holder = :relay AND o.attempts < :failures)
        AND \(hasURL)
        """)

    /// The condition that the endpoint still has the URL that was attempted.
    private static let hasURL = "EXISTS (SELECT 1 FROM website w WHERE w.id = website_id AND w.webhook_url = :url)"

    /// Records that the endpoint works.
    static func recovered(_ website: WebsiteID) -> BoundStatement { clearFailures(website: .id(website)) }

    private static let clearFailures = Statement(
        """
        UPDATE webhook_endpoint SET failing_since = NULL, failed_attempts = 0
        WHERE website_id = :website AND state = 'active' AND failing_since IS NOT NULL
        """)

    /// Disables the endpoint, unless the results of other relays contradict it.
    ///
    /// - Parameter own: the id of the audit row.
    static func disabled(_ settled: WebhookSettlement, _ reason: WebhookHealth.Reason, as own: OperationID)
        -> [BoundStatement]
    {
        let (website, now) = (SQLValue.id(settled.website), SQLValue.timestamp(settled.at))
        return [
            disableEndpoint(
                reason: .word(reason), now: now, own: .id(own), website: website, atOnce: .bool(reason != .failures),
                since: .timestamp(settled.at - WebhookHealth.timeout),
                attempts: .integer(Int64(WebhookHealth.fewestTries)), url: .text(settled.url)),
            auditDisabled(own: .id(own), now: now, website: website),
        ]
    }

    /// Disables the endpoint once. If the statement is repeated, an operator may have enabled the
    /// endpoint in between.
    private static let disableEndpoint = Statement(
        """
        UPDATE webhook_endpoint SET state = 'disabled', disabled_by = :reason, disabled_at = :now, operation = :own
        WHERE website_id = :website AND state = 'active'
        AND (:atOnce = 1 OR (failing_since <= :since AND failed_attempts >= :attempts))
        AND \(hasURL) AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.operation = :own)
        """)

    private static let auditDisabled = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, outcome)
        SELECT :own, :now, 'webhook.disabled', ep.website_id, ep.disabled_by
        FROM webhook_endpoint ep WHERE ep.website_id = :website AND ep.operation = :own
        \(Audit.once)
        """)
}

extension WebhookSettlement {
    var isBack: Bool { effects.contains(.recovered) }
}

extension WebhookSettlement.Effect {
    /// The webhook of a failed attempt, with its number of failures.
    fileprivate var failed: (webhook: OutboxEntryID, failures: Int)? {
        switch self {
        case .retry(let webhook, _, let failures), .dead(let webhook, let failures),
            .suspended(let webhook, let failures):
            (webhook, failures)
        case .delivered, .disabled, .recovered: nil
        }
    }
}
