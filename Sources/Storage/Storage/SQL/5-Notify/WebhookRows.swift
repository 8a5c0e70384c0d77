import Domain
import Relay
import Webhooks
import World

/// The outbox entries of webhooks.
enum WebhookRows {
    static let kind = "webhook"

    /// The time for which the relay tries to deliver a webhook. The endpoint may be disabled during
    /// this whole time.
    static let life = Duration.seconds(30 * 86_400)

    /// The `place` of webhooks about effects of a challenge's end. The end itself has place 0, and
    /// is delivered first.
    static let afterEnd = 1
}

extension Store: WebhookStore {
    public func dueEndpoints(at now: Timestamp) async throws(StoreFailure) -> [DueEndpoint] {
        let script = Script("due endpoints", reads: [endpointsWithDue(now: .timestamp(now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var endpoints: [DueEndpoint] = []
                var failure: StoreFailure?
                for row in rows[0] {
                    do throws(StoreFailure) {
                        endpoints.append(try row.dueEndpoint())
                    } catch {
                        failure = error
                    }
                }
                // A website whose row cannot be read does not prevent webhooks to others.
                if endpoints.isEmpty, let failure { throw failure }
                return endpoints
            })
    }
}

extension Row {
    fileprivate func dueEndpoint() throws(StoreFailure) -> DueEndpoint {
        let attempts = Int(try integer("failed_attempts"))
        let state = try optionalTimestamp("failing_since").map {
            WebhookHealth.State.failing(since: $0, attempts: attempts)
        }
        return DueEndpoint(
            id: try id("website_id"), standing: WebhookHealth(state ?? .working),
            place: EndpointRevision(url: try text("webhook_url"), operation: try id("operation")))
    }
}

private let endpointsWithDue = Statement(
    """
    SELECT ep.website_id, ep.failing_since, ep.failed_attempts, w.webhook_url, ep.operation
    FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
    WHERE ep.state = 'active' AND w.state = 'active' AND w.webhook_url IS NOT NULL AND (\(firstDue)) <= :now
    """)

/// Selects the due time of the oldest webhook of the endpoint `ep`: the first entry of an index.
/// Dead letters, of which there may be many, are not scanned.
private let firstDue = """
    SELECT o.webhook_due_at FROM outbox o WHERE o.website_id = ep.website_id AND o.dead_at IS NULL
    ORDER BY o.webhook_due_at LIMIT 1
    """

extension Store {
    public func webhookBacklog(at now: Timestamp) async throws(StoreFailure) -> WebhookBacklog {
        let script = Script("webhook backlog", reads: [oldestDue(), countDead(), countEndpoints()])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                let oldest = try rows[0].first?.optionalTimestamp("oldest_due_at")
                return WebhookBacklog(
                    oldestDue: oldest.flatMap { $0 <= now ? $0 : nil },
                    dead: try rows[1].first?.integer("dead_count") ?? 0,
                    disabled: try rows[2].first?.integer("disabled_count") ?? 0,
                    websites: try rows[2].first?.integer("endpoint_count") ?? 0)
            })
    }
}

private let oldestDue = Statement(
    "SELECT min((\(firstDue))) AS oldest_due_at FROM webhook_endpoint ep WHERE ep.state = 'active'")

/// Counts dead letters by an index alone, in which entries without a due time are adjacent.
private let countDead = Statement(
    """
    SELECT count(*) AS dead_count FROM outbox
    WHERE due_at IS NULL AND dead_at IS NOT NULL AND kind = '\(WebhookRows.kind)'
    """)

private let countEndpoints = Statement(
    """
    SELECT count(*) AS endpoint_count, count(CASE state WHEN 'disabled' THEN 1 END) AS disabled_count
    FROM webhook_endpoint
    """)
