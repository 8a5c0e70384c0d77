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
        let script = Script("websites to call", reads: [BoundStatement(websitesWithDue, .timestamp(now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var websites: [DueEndpoint] = []
                var failure: StoreFailure?
                for row in rows[0] {
                    do throws(StoreFailure) {
                        websites.append(try row.callableWebsite())
                    } catch {
                        failure = error
                    }
                }
                // A website whose row cannot be read does not prevent webhooks to others.
                if websites.isEmpty, let failure { throw failure }
                return websites
            })
    }

    public func leaseWebhooks(_ claim: WebhookLease) async throws(StoreFailure) -> ClaimedRows<WebhookRow> {
        let taken = try await run(WebhookRows.take(claim))
        return try await read(taken, together: WebhookRows.taken(claim, rows: .claimed(claim.id))) {
            WebhookRows.taken(claim, $0, rows: .called($0))
        }
    }

    public func webhookBacklog(at now: Timestamp) async throws(StoreFailure) -> WebhookBacklog {
        let script = Script(
            "call backlog",
            reads: [BoundStatement(oldestDue), BoundStatement(countDead), BoundStatement(countWebsites)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                let oldest = try rows[0].first?.optionalTimestamp(0)
                return WebhookBacklog(
                    oldestDue: oldest.flatMap { $0 <= now ? $0 : nil }, dead: try rows[1].first?.integer(0) ?? 0,
                    disabled: try rows[2].first?.integer(1) ?? 0, websites: try rows[2].first?.integer(0) ?? 0)
            })
    }
}

extension WebhookRows {
    /// Leases webhooks that are due. The script itself finds them, so they are checked when they
    /// are read.
    fileprivate static func take(_ claim: WebhookLease) -> Query<[OutboxEntryID]> {
        let script = Script(
            "claim calls",
            writes: [
                BoundStatement(
                    takeDue, .id(claim.relay), .id(claim.id), .timestamp(claim.leasedUntil), .id(claim.website),
                    .timestamp(claim.now), .id(claim.website), .id(claim.relay), .integer(Int64(claim.limit)))
            ], reads: [BoundStatement(idsOfClaimed, .id(claim.id))])
        return Query(script: script) { rows in rows[0].entries }
    }

    /// Reads leased webhooks.
    ///
    /// - Parameter call: the webhook to read; nil for all webhooks of the lease.
    fileprivate static func taken(
        _ claim: WebhookLease, _ call: OutboxEntryID? = nil, rows: [SignedRows]
    ) -> Query<[WebhookRow]> {
        let script = Script(
            "claimed calls", rows: [.website(claim.website)] + rows,
            reads: [
                BoundStatement(claimed, .id(claim.id), .id(claim.website), .id(call), .id(call)),
                BoundStatement(stepsOfClaimed, .id(claim.id), .id(call), .id(call)),
            ])
        return Query(script: script) { rows throws(StoreFailure) in
            var steps: [ChallengeID: [ChallengeRow.Step]] = [:]
            for row in rows[1] { steps[try row.id(4), default: []].append(try ChallengeSteps.read(row)) }
            var calls: [WebhookRow] = []
            for row in rows[0] { calls.append(try row.call(steps)) }
            return calls
        }
    }
}

extension [SignedRows] {
    /// All rows on which the webhooks of a lease rely.
    fileprivate static func claimed(_ claim: OperationID) -> [SignedRows] {
        [.entries(claimed: claim), .users(claimed: claim), .challenges(claimed: claim), .devices(claimed: claim)]
    }

    /// All rows on which one webhook relies.
    fileprivate static func called(_ call: OutboxEntryID) -> [SignedRows] {
        [.entry(call), .user(of: call), .challenge(of: call), .device(of: call)]
    }
}

extension Rows {
    /// The ids of outbox entries. A row whose key is not a valid id is left out, because no
    /// statement could name it.
    var entries: [OutboxEntryID] { compactMap { try? $0.id(0) } }
}

extension Row {
    fileprivate func callableWebsite() throws(StoreFailure) -> DueEndpoint {
        let tries = Int(try integer(2))
        let state = try optionalTimestamp(1).map { WebhookHealth.State.failing(since: $0, attempts: tries) }
        return DueEndpoint(
            id: try id(0), standing: WebhookHealth(state ?? .working),
            place: EndpointRevision(url: try text(3), operation: try id(4)))
    }

    fileprivate func call(_ steps: [ChallengeID: [ChallengeRow.Step]]) throws(StoreFailure) -> WebhookRow {
        let device: DeviceID? = try optionalID(13)
        let challenge: ChallengeID? = try optionalID(18)
        return WebhookRow(
            id: try id(0), event: try text(1), website: try id(2), websiteName: try text(3), url: try text(4),
            secrets: try blob(5), previousUntil: try optionalTimestamp(6), user: try id(7), token: try id(8),
            challenge: try challenge.map { id throws(StoreFailure) in try Challenges.read(self, steps[id] ?? []) },
            device: try device.map { id throws(StoreFailure) in
                WebhookDevice(
                    id: id, name: try optionalText(14), platform: try word(15), publicKey: try optionalBlob(16),
                    binding: try optionalText(17))
            },
            createdAt: try timestamp(9), expiresAt: try timestamp(10), failures: Int(try integer(11)),
            place: Int(try integer(12)))
    }
}

/// The due time of the oldest webhook of the endpoint `ep`: the first entry of an index. Dead
/// letters, of which there may be many, are not scanned.
private let firstDue = """
    (SELECT o.webhook_due_at FROM outbox o WHERE o.website_id = ep.website_id AND o.dead_at IS NULL ORDER BY o.webhook_due_at LIMIT 1)
    """

private let websitesWithDue = Statement(
    """
    SELECT ep.website_id, ep.failing_since, ep.failed_attempts, w.webhook_url, ep.operation
    FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
    WHERE ep.state = 'active' AND w.state = 'active' AND w.webhook_url IS NOT NULL AND
    """ + " " + firstDue + " <= ?")

/// Leases webhooks that are due. It skips those with an earlier webhook of the same challenge.
/// These are due no earlier than the earlier one, so few of them are scanned.
private let takeDue = Statement(
    """
    UPDATE outbox SET holder = ?, lease = ?, webhook_due_at = ?
    WHERE /*S! id IN (SELECT o.id FROM outbox o WHERE o.*/ website_id = ? AND dead_at IS NULL AND webhook_due_at <= ?
    AND EXISTS (SELECT 1 FROM webhook_endpoint ep JOIN website w ON w.id = ep.website_id
    WHERE ep.website_id = ? AND ep.state = 'active' AND w.state = 'active' AND w.webhook_url IS NOT NULL)
    AND (holder IS NULL OR holder = ? OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = holder))
    AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.challenge_id = /*M! outbox. */ /*S! o. */ challenge_id
    AND e.kind = '\(WebhookRows.kind)' AND e.dead_at IS NULL AND e.ordinal < /*M! outbox. */ /*S! o. */ ordinal)
    ORDER BY webhook_due_at LIMIT ? /*S! ) */
    """)

private let idsOfClaimed = Statement("SELECT id FROM outbox WHERE lease = ? ORDER BY created_at, ordinal")

private let claimed = Statement(
    """
    SELECT o.id, o.event, o.website_id, w.name, w.webhook_url, ep.secrets, ep.previous_until, o.user_id, u.token,
    o.created_at, o.expires_at, o.attempts, o.ordinal, d.id, d.name, d.platform, d.public_key, d.binding,
    """ + Challenges.columns + """
         FROM outbox o JOIN website w ON w.id = o.website_id JOIN webhook_endpoint ep ON ep.website_id = w.id
        JOIN user u ON u.id = o.user_id
        LEFT JOIN challenge c ON c.id = o.challenge_id LEFT JOIN device d ON d.id = o.device_id
        WHERE o.lease = ? AND o.website_id = ? AND (? IS NULL OR o.id = ?) ORDER BY o.created_at, o.ordinal
        """)

private let stepsOfClaimed = Statement(
    """
    SELECT s.factor, s.state, s.at, s.reason, s.challenge_id FROM outbox o JOIN step s ON s.challenge_id = o.challenge_id
    WHERE o.lease = ? AND (? IS NULL OR o.id = ?) ORDER BY s.challenge_id, s.ordinal
    """)

private let oldestDue = Statement("SELECT min(" + firstDue + ") FROM webhook_endpoint ep WHERE ep.state = 'active'")

/// Counts dead letters by an index alone, in which entries without a due time are adjacent.
private let countDead = Statement(
    "SELECT count(*) FROM outbox WHERE due_at IS NULL AND dead_at IS NOT NULL AND kind = '\(WebhookRows.kind)'")

private let countWebsites = Statement(
    "SELECT count(*), count(CASE state WHEN 'disabled' THEN 1 END) FROM webhook_endpoint")
