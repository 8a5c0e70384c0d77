import Bytes
import Crypto
import Domain
import Log
import Webhooks
import World

/// The delivery of webhooks: the relay leases due entries from the outbox, signs them and sends
/// them to the websites' endpoints.
///
/// A webhook is an outbox entry that was written with the change that it reports. A round looks for
/// endpoints with due webhooks. For each endpoint it leases as many as its queue has room for
/// (`WebhookQueues`), and a task sends each of them. After each attempt the queue decides what
/// follows: delivered, retry, dead letter, or the endpoint disabled. The store records that
/// (`WebhookSettlement`), and another round begins.
///
/// Invariants: the webhooks about one challenge are delivered in order, and at most one of them is
/// in flight. The relay tries a webhook until it is delivered or becomes a dead letter. It has the
/// same id at every attempt, so the website can drop repetitions. One slow endpoint does not delay
/// the others.
///
/// Failures:
/// - The relay dies during an attempt: another relay leases the entry and sends it again.
/// - The store fails after an attempt: `webhooks.unsettled` keeps the outcome for the next lease.
/// - The secrets cannot be opened: the endpoint is paused for a minute, and no attempt is counted.
/// - The endpoint fails for long: its health disables it until an operator enables it.
///
/// Tests: `RelayTests/WebhookDeliveryTests.swift`, `WebhookOutageTests.swift`,
/// `WebhookStoreOutageTests.swift` and `WebhookBodyTests.swift`; `APITests/WebhookTests.swift`.
extension Relay {
    /// The duration of a webhook's lease, longer than any attempt may take. After it, the entry is
    /// due again.
    static let webhookLease = Duration.seconds(30)

    /// Runs a round of webhooks. The daemon's timer calls this every second. A decision or the end
    /// of an attempt starts a round at once. One round runs at a time. If another one is requested
    /// meanwhile, it follows.
    public func deliverWebhooks() async {
        if webhooks.beginRound() { await runWebhookRound() }
    }

    /// Starts a round because a webhook may have been written. This costs nothing if no website has
    /// an endpoint.
    func scheduleWebhooks() {
        if webhooks.hasEndpoints, webhooks.beginRound() {
            // The round is for all websites, not for the request that starts it.
            spawn {
                await LoggedRequest.run(nil) {
                    await Actor.run(nil) { await Tenant.relay.run { await self.runWebhookRound() } }
                }
            }
        }
    }

    /// Stops webhooks and the backlog of messages because the relay ends. Attempts that are in flight
    /// continue, and no new one begins.
    public func stopDeliveries() async {
        webhooks.close()
        leasedMessages.close()
    }

    /// Replaces the courier from the next attempt on; nil if none is configured.
    public func replace(_ courier: (any WebhookCourier)?) { webhooks.replace(courier) }

    /// Reads the backlog of all endpoints for the metrics.
    func recordWebhookBacklog() async {
        let now = time.now()
        let backlog = try? await withStore("webhooks") { () async throws(StoreFailure) in
            try await store.webhookBacklog(at: now)
        }
        guard let backlog else { return }
        webhooks.setHasEndpoints(hasEndpoints: backlog.websites > 0)
        metrics.webhooks.set(backlog, at: now)
    }

    private func runWebhookRound() async {
        repeat {
            let now = time.now()
            let websites = try? await withStore("webhooks") { () async throws(StoreFailure) in
                try await store.dueEndpoints(at: now)
            }
            if websites?.isEmpty == false { webhooks.setHasEndpoints(hasEndpoints: true) }
            for website in websites ?? [] {
                let room = webhooks.queues.lease(website, at: now)
                // Each endpoint has a task, so that a slow query for one does not delay the others.
                if room > 0 { spawn { await self.lease(room, of: website.id) } }
            }
        } while webhooks.needsAnotherRound()
    }

    private func lease(_ room: Int, of website: WebsiteID) async {
        let now = time.now()
        let lease = WebhookLease(
            id: operations.draw(), relay: id, website: website, now: now, leasedUntil: now + Self.webhookLease,
            limit: room
        )
        let found = try? await withStore("webhooks") { () async throws(StoreFailure) in
            try await store.leaseWebhooks(lease)
        }
        await setAside(found?.failed ?? [], "calls")
        let leaving = prepared(found?.rows ?? [], of: website)
        let added = webhooks.queues.addLeased(
            leaving.map(\.row), of: website, at: time.now(), isClosed: webhooks.isClosed)
        for webhook in leaving {
            if added.leaving.contains(webhook.row.id) {
                spawn { await self.send(webhook) }
            } else {
                inFlight.end(webhook.row.id)
            }
        }
        if !added.effects.isEmpty { await requeue(added.effects, of: website, nil) }
        if added.isWanted { scheduleWebhooks() }
    }

    /// A webhook that is ready to be sent.
    private struct SignedWebhook: Sendable {
        let row: WebhookRow
        let body: [UInt8]
        let secrets: WebhookSecrets
    }

    /// The leased webhooks that are ready to be sent. The others are settled here.
    private func prepared(_ rows: [WebhookRow], of website: WebsiteID) -> [SignedWebhook] {
        var prepared: [SignedWebhook] = []
        let now = time.now()
        for row in rows {
            // The lease ended before the attempt did. A slow store or website must not cause a
            // second attempt.
            guard inFlight.begin(row.id) else { continue }
            if let known = webhooks.unsettled.take(row.id), known.holds(for: row, at: now) {
                spawn {
                    await self.write([known], known.settled, as: known.operation.repeated)
                    self.inFlight.end(row.id)
                    self.scheduleWebhooks()
                }
                continue
            }
            guard let webhook = prepare(row, at: now) else {
                inFlight.end(row.id)
                continue
            }
            prepared.append(webhook)
        }
        return prepared
    }

    private func prepare(_ row: WebhookRow, at now: Timestamp) -> SignedWebhook? {
        guard now < row.expiresAt else {
            drop(row, .dead(row.id, failures: row.failures), "expired unsent")
            return nil
        }
        guard let body = WebhookBody.text(of: row, at: now) else {
            drop(row, .delivered(row.id), nil)
            return nil
        }
        guard let secrets = secrets(of: row) else {
            log.error("webhook.sealed", fields(of: row, "the webhook secrets cannot be decrypted"))
            webhooks.queues.pause(row.website, at: now)
            spawn {
                await self.requeue([.retry(row.id, at: now, failures: row.failures)], of: row.website, "not signed")
            }
            return nil
        }
        return SignedWebhook(row: row, body: body, secrets: secrets)
    }

    private func secrets(of row: WebhookRow) -> WebhookSecrets? {
        let associated = WebhookSecretSeal.associated(website: row.website)
        guard let text = try? sealer.open(row.secrets, associated: associated) else { return nil }
        return WebhookSecrets(text: Secret(text), previousUntil: row.previousUntil)
    }

    private func send(_ webhook: SignedWebhook) async {
        let row = webhook.row
        let request = WebhookRequest(
            row.id, to: row.url, webhook.body, signedWith: webhook.secrets, trace: row.challenge?.trace, at: time.now())
        let outcome = await webhooks.courier?.send(request) ?? .unsent
        let now = time.now()
        let end = webhooks.queues.end(row.id, of: row.website, outcome, at: now, jitter: randomFraction())
        let effects = end.effects
        metrics.webhooks.ended(outcome, isDead: effects.contains { $0.isDead })
        let settled = WebhookSettlement(
            website: row.website, url: row.url, relay: id, at: now, effects: effects, reason: outcome.reason,
            tried: outcome.meaning == .delivered && !end.isCounted ? .nothing : outcome.meaning.tried)
        let operation = operations.new()
        let attempt = CompletedAttempt(row: row, outcome: outcome, settled: settled, operation: operation)
        if effects == [.delivered(row.id)] {
            // While the store records this delivery, the next webhooks are leased.
            if end.wasFull { scheduleWebhooks() }
            return await record(attempt)
        }
        await write([attempt], settled, as: operation)
        if effects.contains(.recovered) { webhooks.queues.endRecovery(of: row.website, at: time.now()) }
        inFlight.end(row.id)
        scheduleWebhooks()
    }

    /// Records a delivery, together with others to the same website.
    private func record(_ attempt: CompletedAttempt) async {
        guard webhooks.deliveries.add(attempt) else { return }
        let website = attempt.row.website
        while let some = webhooks.deliveries.take(of: website) {
            let isCounted = some.contains { $0.settled.tried == .delivered }
            let settled = WebhookSettlement(
                website: website, url: nil, relay: id, at: time.now(), effects: some.flatMap(\.settled.effects),
                reason: nil, tried: isCounted ? .delivered : .nothing)
            await write(some, settled, as: operations.new())
            for webhook in some { inFlight.end(webhook.row.id) }
            scheduleWebhooks()
        }
    }

    /// Records the outcomes of attempts once: the log reports only what the store has.
    ///
    /// - Parameter settled: the settlement of all of them.
    private func write(_ attempts: [CompletedAttempt], _ settled: WebhookSettlement, as operation: Operation) async {
        let disabled = try? await withStore("webhooks") { () async throws(StoreFailure) in
            try await store.settle(settled, as: operation)
        }
        // This relay keeps the leases. The entries are due again when the leases end.
        guard let disabled else {
            let now = time.now()
            for known in attempts {
                webhooks.unsettled.retain(known, of: known.row.id, until: now + CompletedAttempt.life, at: now)
            }
            return
        }
        for known in attempts { report(known) }
        guard let row = attempts.first?.row else { return }
        if settled.effects.contains(.recovered) { log.notice("webhook.recovered", [.website: row.websiteName]) }
        if disabled { log.error("webhook.disabled", [.website: row.websiteName, .reason: settled.reason]) }
    }

    /// Counts and logs the outcome of an attempt that the store has.
    private func report(_ known: CompletedAttempt) {
        var status: Int?
        if case .answered(let code, _) = known.outcome { status = code }
        let fields = fields(of: known.row, known.settled.reason, status: status)
        switch known.outcome.meaning {
        case .delivered:
            metrics.webhooks.delivered(after: known.settled.at - known.row.createdAt)
            log.info("webhook.delivered", fields)
        case .notAttempted: log.info("webhook.unsent", fields)
        case .failed where known.settled.effects.contains { $0.isDead }: log.error("webhook.dead", fields)
        case .failed, .unsubscribed: log.warning("webhook.failed", fields)
        }
    }

    /// Settles a webhook that is not sent and never will be.
    private func drop(_ row: WebhookRow, _ effect: WebhookSettlement.Effect, _ reason: String?) {
        spawn {
            guard await self.requeue([effect], of: row.website, reason) else { return }
            guard effect.isDead else { return self.log.info("webhook.void", self.fields(of: row, nil)) }
            self.metrics.webhooks.expired()
            self.log.error("webhook.dead", self.fields(of: row, reason))
        }
    }

    /// Returns webhooks to the queue that were not attempted. If the store does not answer, their
    /// leases end a little later with the same result.
    @discardableResult
    private func requeue(_ effects: [WebhookSettlement.Effect], of website: WebsiteID, _ reason: String?) async -> Bool
    {
        let settled = WebhookSettlement(
            website: website, url: nil, relay: id, at: time.now(), effects: effects, reason: reason, tried: .nothing)
        let done = try? await withStore("webhooks") { () async throws(StoreFailure) in
            try await store.settle(settled, as: operations.new())
        }
        return done != nil
    }

    private func fields(of row: WebhookRow, _ reason: String?, status: Int? = nil) -> LogFields {
        [
            .website: row.websiteName, .user: row.user.text, .challenge: row.challenge?.id.text,
            .message: row.id.text, .kind: row.event, .attempt: row.failures + 1, .status: status, .reason: reason,
            .milliseconds: (time.now() - row.createdAt).wholeMilliseconds,
        ]
    }
}

extension WebhookQueue.Effect {
    fileprivate var isDead: Bool {
        if case .dead = self { true } else { false }
    }
}

extension WebhookOutcome.Meaning {
    /// The result that counts for the endpoint. An endpoint that unsubscribed (410) is disabled, so
    /// nothing is counted.
    fileprivate var tried: WebhookSettlement.EndpointResult {
        switch self {
        case .delivered: .delivered
        case .failed: .failed
        case .unsubscribed, .notAttempted: .nothing
        }
    }
}
