import Bytes
import Crypto
import Domain
import Log
import Webhooks
import World

// Tell, to websites by themselves: nobody asked. What is to be told lies in the outbox, written with the change itself.

extension Relay {
    /// How long a relay may act on a call before it counts as left behind. Longer than any call may take.
    static let webhookLease = Duration.seconds(30)

    /// Called by the daemon's timer every second; what is decided here, or ends, asks for it at once. One round at a time,
    /// and one more where it was asked for meanwhile.
    public func deliverWebhooks() async {
        if webhooks.beginRound() { await runWebhookRound() }
    }

    /// Something may be to be told. Where no website has a callback, that costs nothing.
    func scheduleWebhooks() {
        if webhooks.hasEndpoints, webhooks.beginRound() {
            spawn { await Tenant.relay.run { await self.runWebhookRound() } }
        }
    }

    /// The relay ends: nothing leaves any more. What is under way comes to its end.
    public func stopWebhooks() async { webhooks.close() }

    /// From the next call on; nil where none is set up.
    public func replace(_ courier: (any WebhookCourier)?) { webhooks.replace(courier) }

    /// How it stands with all of them, for whoever looks at the numbers.
    func recordWebhookBacklog() async {
        let now = time.now()
        let backlog = try? await withStore("calls") { () async throws(StoreFailure) in
            try await store.webhookBacklog(at: now)
        }
        guard let backlog else { return }
        webhooks.setHasEndpoints(hasEndpoints: backlog.websites > 0)
        metrics.webhooks.set(backlog, at: now)
    }

    private func runWebhookRound() async {
        repeat {
            let now = time.now()
            let websites = try? await withStore("calls") { () async throws(StoreFailure) in
                try await store.dueEndpoints(at: now)
            }
            if websites?.isEmpty == false { webhooks.setHasEndpoints(hasEndpoints: true) }
            for website in websites ?? [] {
                let room = webhooks.lines.lease(website, at: now)
                // Each by itself: a store that is slow for one is not made slow for all.
                if room > 0 { spawn { await self.lease(room, of: website.id) } }
            }
        } while webhooks.needsAnotherRound()
    }

    private func lease(_ room: Int, of website: WebsiteID) async {
        let now = time.now()
        let claim = WebhookLease(
            id: operations.draw(), relay: id, website: website, now: now, leasedUntil: now + Self.webhookLease,
            limit: room
        )
        let found = try? await withStore("calls") { () async throws(StoreFailure) in
            try await store.leaseWebhooks(claim)
        }
        await setAside(found?.failed ?? [], "calls")
        let leaving = prepared(found?.rows ?? [], of: website)
        let claimed = webhooks.lines.claimed(
            leaving.map(\.row), of: website, at: time.now(), isClosed: webhooks.isClosed)
        for call in leaving {
            if claimed.leaving.contains(call.row.id) {
                spawn { await self.send(call) }
            } else {
                inFlight.end(call.row.id)
            }
        }
        if !claimed.effects.isEmpty { await requeue(claimed.effects, of: website, nil) }
        if claimed.isWanted { scheduleWebhooks() }
    }

    /// A call that can leave.
    private struct SignedWebhook: Sendable {
        let row: WebhookRow
        let body: [UInt8]
        let secrets: WebhookSecrets
    }

    /// What leaves of what was claimed; the rest has its end.
    private func prepared(_ rows: [WebhookRow], of website: WebsiteID) -> [SignedWebhook] {
        var prepared: [SignedWebhook] = []
        let now = time.now()
        for row in rows {
            // Its lease was over before it was: nothing is sent twice because the store or the website is slow.
            guard inFlight.begin(row.id) else { continue }
            if let known = webhooks.unsettled.take(row.id), known.holds(for: row, at: now) {
                spawn {
                    await self.write(known, as: self.operations.again(known.operation))
                    self.inFlight.end(row.id)
                    self.scheduleWebhooks()
                }
                continue
            }
            guard let call = prepare(row, at: now) else {
                inFlight.end(row.id)
                continue
            }
            prepared.append(call)
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
            log.error("callback.sealed", fields(of: row, "its secrets do not open"))
            webhooks.lines.pause(row.website, at: now)
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
        return WebhookSecrets(text: Secret(text), formerUntil: row.formerUntil)
    }

    private func send(_ call: SignedWebhook) async {
        let row = call.row
        let made = WebhookRequest(row.id, to: row.url, call.body, signedWith: call.secrets, at: time.now())
        let outcome = await webhooks.courier?.call(made) ?? .unsent
        let now = time.now()
        let (effects, isCounted) = webhooks.lines.end(
            row.id, of: row.website, outcome, at: now, chance: randomFraction())
        metrics.webhooks.ended(outcome, isDead: effects.contains { $0.isDead })
        let settled = WebhookSettlement(
            website: row.website, url: row.url, relay: id, at: now, effects: effects, reason: outcome.reason,
            tried: outcome.meaning == .delivered && !isCounted ? .nothing : outcome.meaning.tried)
        let operation = operations.new()
        await write(
            CompletedAttempt(row: row, outcome: outcome, settled: settled, operation: operation.id), as: operation)
        if effects.contains(.recovered) { webhooks.lines.endRecovery(of: row.website, at: time.now()) }
        inFlight.end(row.id)
        scheduleWebhooks()
    }

    /// What is known of a call, once: the log says what the store says.
    private func write(_ known: CompletedAttempt, as operation: Operation) async {
        let row = known.row
        let disabled = try? await withStore("calls") { () async throws(StoreFailure) in
            try await store.settle(known.settled, as: operation)
        }
        // The row stays leased to us; it is due again when the lease is over.
        guard let disabled else {
            let now = time.now()
            return webhooks.unsettled.keep(known, of: row.id, until: now + CompletedAttempt.life, at: now)
        }
        var status: Int?
        if case .answered(let code, _) = known.outcome { status = code }
        let fields = fields(of: row, known.settled.reason, status: status)
        switch known.outcome.meaning {
        case .delivered:
            metrics.webhooks.delivered(after: known.settled.at - row.createdAt)
            log.info("callback.delivered", fields)
        case .notAttempted: log.info("callback.unsent", fields)
        case .failed where known.settled.effects.contains { $0.isDead }: log.error("callback.dead", fields)
        case .failed, .unsubscribed: log.warning("callback.failed", fields)
        }
        if known.settled.effects.contains(.recovered) { log.notice("callback.recovered", [.website: row.websiteName]) }
        if disabled {
            log.error("callback.disabled", [.website: row.websiteName, .reason: known.settled.reason])
        }
    }

    /// One that is not sent, and never will be.
    private func drop(_ row: WebhookRow, _ effect: WebhookSettlement.Effect, _ reason: String?) {
        spawn {
            guard await self.requeue([effect], of: row.website, reason) else { return }
            guard effect.isDead else { return self.log.info("callback.void", self.fields(of: row, nil)) }
            self.metrics.webhooks.expired()
            self.log.error("callback.dead", self.fields(of: row, reason))
        }
    }

    /// What was not tried. Where the store is away, the lease says the same a little later.
    @discardableResult
    private func requeue(_ effects: [WebhookSettlement.Effect], of website: WebsiteID, _ reason: String?) async -> Bool
    {
        let settled = WebhookSettlement(
            website: website, url: nil, relay: id, at: time.now(), effects: effects, reason: reason, tried: .nothing)
        let done = try? await withStore("calls") { () async throws(StoreFailure) in
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
    /// Whoever wants none of these any more is not counted, but disabled.
    fileprivate var tried: WebhookSettlement.EndpointResult {
        switch self {
        case .delivered: .delivered
        case .failed: .failed
        case .unsubscribed, .notAttempted: .nothing
        }
    }
}
