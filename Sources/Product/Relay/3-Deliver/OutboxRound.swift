import Domain
import Log
import World

extension Relay {
    /// How long a relay may act on a row before it counts as left behind. Longer than any push may take.
    static let lease = Duration.seconds(15)
    static let claimSize = 100

    /// Does what is due in the outbox. Called by the daemon's timer, and again at once while there is more.
    public func processDueEntries() async {
        let now = time.now()
        let claim = OutboxLease(
            id: operations.draw(), relay: id, now: now, leasedUntil: now + Self.lease,
            messagesLeasedUntil: now + Self.messageLease, limit: Self.claimSize)
        let found = try? await withStore("outbox") { () async throws(StoreFailure) in try await store.lease(claim) }
        guard let found else { return }
        for errand in found.rows {
            switch errand.kind {
            case .push: spawn { await self.redeliver(errand) }
            case .mail, .sms: startDelivery(errand.id)
            case .expiry: spawn { await self.expire(errand) }
            case .next: spawn { await self.continueCascade(errand) }
            }
        }
        await setAside(found.failed, "outbox")
        if found.rows.count + found.failed.count == Self.claimSize { spawn { await self.processDueEntries() } }
    }

    private func redeliver(_ entry: LeasedEntry) async {
        if let known = unsettled.take(entry.id) { return await write(known, as: operations.again(known.operation)) }
        let found = await attending(entry.id) { () async throws(Refusal) in
            try await withStore("outbox") { () async throws(StoreFailure) in try await store.push(entry.id) }
        }
        guard let row = found ?? nil else { return }
        let shown = Context.shownInPush(row.context)
        let push = Push(
            id: entry.id, challenge: row.challenge, deviceToken: row.deviceToken, environment: row.environment,
            // Of a policy that cannot be read any more it is only known that it may have asked for little.
            detail: (try? settings.policy.changed(by: row.policy))?.pushDetail ?? .minimal, website: row.website,
            service: shown.service, ip: shown.ip, place: shown.place, expiresAt: row.expiresAt,
            deliverBy: PushDelivery.deliverBy(row.askedAt, row.expiresAt, at: time.now()))
        await deliver(PushDelivery(push: push, device: row.device, askedAt: row.askedAt, attempts: row.attempts))
    }

    private func continueCascade(_ entry: LeasedEntry) async {
        guard let challenge = entry.challenge else { return }
        _ = await attending(entry.id) { () async throws(Refusal) in try await advanced(challenge, because: .due) }
    }

    private func expire(_ entry: LeasedEntry) async {
        guard let challenge = entry.challenge else { return }
        let now = time.now()
        let life = ChallengeLife(state: .expired, decision: nil, reason: .expired, expiresAt: now)
        let closing = ChallengeEnd(challenge: challenge, life: life, event: "challenge.expired", at: now)
        _ = await attending(entry.id) { () async throws(Refusal) in try await end(closing, as: operations.new()) }
    }
}
