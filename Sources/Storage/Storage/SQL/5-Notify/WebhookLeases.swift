import Domain
import Relay
import Webhooks
import World

extension Store {
    public func leaseWebhooks(_ lease: WebhookLease) async throws(StoreFailure) -> LeasedRows<WebhookRow> {
        let leased = try await run(WebhookRows.lease(lease))
        return try await read(leased, together: WebhookRows.leased(lease, rows: .leased(lease.id))) {
            WebhookRows.leased(lease, $0, rows: .webhook($0))
        }
    }
}

extension WebhookRows {
    /// Leases webhooks that are due. The script itself finds them, so they are checked when they
    /// are read.
    fileprivate static func lease(_ lease: WebhookLease) -> Query<[OutboxEntryID]> {
        let script = Script(
            "lease webhooks",
            writes: [
                leaseDue(
                    relay: .id(lease.relay), lease: .id(lease.id), leasedUntil: .timestamp(lease.leasedUntil),
                    website: .id(lease.website), now: .timestamp(lease.now), limit: .integer(Int64(lease.limit)))
            ], reads: [idsOfLease(lease: .id(lease.id))])
        return Query(script: script) { rows in rows[0].entries }
    }
}

/// Leases webhooks that are due. It skips those with an earlier webhook of the same challenge.
/// These are due no earlier than the earlier one, so few of them are scanned.
private let leaseDue = Statement(
    """
    UPDATE outbox SET holder = :relay, lease = :lease, webhook_due_at = :leasedUntil
    WHERE /*S! id IN (SELECT o.id FROM outbox o WHERE o.*/ website_id = :website
    AND dead_at IS NULL AND webhook_due_at <= :now
    AND EXISTS (SELECT 1 FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
    WHERE ep.website_id = :website AND ep.state = 'active' AND w.state = 'active' AND w.webhook_url IS NOT NULL)
    AND (holder IS NULL OR holder = :relay OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = holder))
    AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.challenge_id = /*M! outbox. */ /*S! o. */ challenge_id
    AND e.kind = '\(WebhookRows.kind)' AND e.dead_at IS NULL AND e.ordinal < /*M! outbox. */ /*S! o. */ ordinal)
    ORDER BY webhook_due_at LIMIT :limit /*S! ) */
    """)

private let idsOfLease = Statement("SELECT id FROM outbox WHERE lease = :lease ORDER BY created_at, ordinal")

extension Rows {
    /// The ids of outbox entries. A row whose key is not a valid id is left out, because no
    /// statement could name it.
    var entries: [OutboxEntryID] { compactMap { try? $0.id("id") } }
}

extension WebhookRows {
    /// Reads leased webhooks.
    ///
    /// - Parameter webhook: the webhook to read; nil for all webhooks of the lease.
    fileprivate static func leased(
        _ lease: WebhookLease, _ webhook: OutboxEntryID? = nil, rows: [SignedRows]
    ) -> Query<[WebhookRow]> {
        let script = Script(
            "leased webhooks", rows: [.website(lease.website)] + rows,
            reads: [
                readLeased(lease: .id(lease.id), website: .id(lease.website), entry: .id(webhook)),
                stepsOfLeased(lease: .id(lease.id), entry: .id(webhook)),
            ])
        return Query(script: script) { rows throws(StoreFailure) in
            var steps: [ChallengeID: [ChallengeRow.Step]] = [:]
            for row in rows[1] {
                steps[try row.id("challenge_id"), default: []].append(try ChallengeSteps.read(row))
            }
            var webhooks: [WebhookRow] = []
            for row in rows[0] { webhooks.append(try row.webhook(steps)) }
            return webhooks
        }
    }
}

extension Row {
    fileprivate func webhook(_ steps: [ChallengeID: [ChallengeRow.Step]]) throws(StoreFailure) -> WebhookRow {
        let device: DeviceID? = try optionalID("device_id")
        let challenge: ChallengeID? = try optionalID("challenge_id")
        return WebhookRow(
            id: try id("id"), event: try text("event"), website: try id("website_id"),
            websiteName: try text("website_name"), url: try text("webhook_url"), secrets: try blob("secrets"),
            previousUntil: try optionalTimestamp("previous_until"), user: try id("user_id"), token: try id("token"),
            challenge: try challenge.map { id throws(StoreFailure) in try Challenges.read(self, steps[id] ?? []) },
            device: try device.map { id throws(StoreFailure) in
                WebhookDevice(
                    id: id, name: try optionalText("device_name"), platform: try word("platform"),
                    publicKey: try optionalBlob("public_key"),
                    agreementKey: try optionalBlob("agreement_key"), binding: try optionalText("binding"))
            },
            createdAt: try timestamp("created_at"), expiresAt: try timestamp("expires_at"),
            failures: Int(try integer("attempts")), place: Int(try integer("ordinal")))
    }
}

private let readLeased = Statement(
    """
    SELECT o.id, o.event, o.website_id, w.name AS website_name, w.webhook_url, ep.secrets, ep.previous_until, o.user_id,
    u.token, o.created_at, o.expires_at, o.attempts, o.ordinal, d.id AS device_id, d.name AS device_name, d.platform,
    d.public_key, d.agreement_key, d.binding, \(Challenges.columns)
    FROM outbox o JOIN website w ON w.id = o.website_id JOIN webhook_endpoint ep ON ep.website_id = w.id
    JOIN user u ON u.id = o.user_id
    LEFT JOIN challenge c ON c.id = o.challenge_id LEFT JOIN device d ON d.id = o.device_id
    WHERE o.lease = :lease AND o.website_id = :website AND (:entry IS NULL OR o.id = :entry)
    ORDER BY o.created_at, o.ordinal
    """)

private let stepsOfLeased = Statement(
    """
    SELECT s.factor, s.state, s.at, s.reason, s.challenge_id FROM outbox o JOIN step s ON s.challenge_id = o.challenge_id
    WHERE o.lease = :lease AND (:entry IS NULL OR o.id = :entry) ORDER BY s.challenge_id, s.ordinal
    """)

extension [SignedRows] {
    /// All rows on which the webhooks of a lease rely.
    fileprivate static func leased(_ lease: OperationID) -> [SignedRows] {
        [.entries(leased: lease), .users(leased: lease), .challenges(leased: lease), .devices(leased: lease)]
    }

    /// All rows on which one webhook relies.
    fileprivate static func webhook(_ webhook: OutboxEntryID) -> [SignedRows] {
        [.entry(webhook), .user(of: webhook), .challenge(of: webhook), .device(of: webhook)]
    }
}
