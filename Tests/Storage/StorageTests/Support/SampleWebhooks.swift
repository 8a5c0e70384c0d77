import Domain
import Webhooks
import World

@testable import Relay
@testable import Storage

/// A website with webhooks about the users of the sample, and calls of every store function for webhooks.
extension Sample {
    static let caller: WebsiteID = id(3)

    private static let insertWebsite = Statement(
        """
        INSERT INTO website
        VALUES (:website, 'mill', 'Mill', 'active', '{}', 'https://mill.example/hook', :now, :operation, NULL)
        """)
    private static let insertEndpoint = Statement(
        "INSERT INTO webhook_endpoint VALUES (:website, x'01', 'key', NULL, 'active', NULL, NULL, NULL, 0, :operation, '2026-11-22 09:00:00.000', NULL)"
    )
    private static let insertWebhook = Statement(
        """
        INSERT INTO outbox (id, kind, event, ordinal, user_id, website_id, challenge_id, created_at, expires_at, webhook_due_at,
        dead_at, attempts)
        VALUES (:entry, 'webhook', 'login.decided', 0, :user, :website, :challenge, :now, :expiresAt, :dueAt, :deadAt, 0)
        """)

    static func fillWebhooks(_ store: Store, at url: StorageURL) async throws {
        let caller = SQLValue.id(caller)
        var steps = [
            insertWebsite(website: caller, now: .timestamp(now), operation: caller),
            insertEndpoint(website: caller, operation: caller),
        ]
        for number in 1...count {
            let user: UserID = id(number)
            let (isDead, isDue) = (number % 10 == 0, number < 5)
            steps.append(
                insertWebhook(
                    entry: .id(id(number + 30_000) as OutboxEntryID), user: .id(user), website: caller,
                    challenge: .id(user), now: .timestamp(now), expiresAt: .timestamp(later),
                    dueAt: isDead ? .null : .timestamp(isDue ? now - .seconds(5) : later),
                    deadAt: isDead ? .timestamp(now) : .null))
        }
        _ = try await store.run(Script("fill", writes: steps))
        try url.analyze("website, webhook_endpoint, outbox")
    }

    static func runWebhooks(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.dueEndpoints(at: now)
        let lease = WebhookLease(
            id: id(9050), relay: relay, website: caller, now: now, leasedUntil: later, limit: 4)
        _ = try await store.leaseWebhooks(lease)
        try await store.setAside(id(39_999), by: relay, at: now)
        let dead = FailedEntries.dead(id(39_999), by: relay, at: now)
        _ = try await store.run(Script("set aside", writes: [dead]))
        let effects: [[WebhookSettlement.Effect]] = [
            [.retry(id(30_001), at: later, failures: 1)], [.dead(id(30_002), failures: 8), .disabled(.failures)],
            [.delivered(id(30_003)), .recovered],
        ]
        for (effects, tried) in zip(effects, [WebhookSettlement.EndpointResult.failed, .failed, .delivered]) {
            let settled = WebhookSettlement(
                website: caller, url: "https://mill.example/hook", relay: relay, at: now, effects: effects,
                reason: "answered 500", tried: tried)
            _ = try await store.settle(settled, as: operation())
        }
        _ = try await store.webhookBacklog(at: now)
        _ = try await store.webhooks(sealedBy: "key", skipping: 0)
        try await store.reseal([ReencryptedSecrets(website: caller, old: [1], new: [2], key: "other")])
        _ = try await store.run(KeyUse.webhooks)
    }
}
