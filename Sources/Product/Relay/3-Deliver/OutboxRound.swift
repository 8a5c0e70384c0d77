import Domain
import Log
import World

/// The outbox round: once a second each relay leases the due entries of the outbox and does their
/// work. Before, it records which challenges phones have shown, because no further factor begins
/// for these. Webhooks have their own round, see `WebhookDelivery.swift`.
///
/// An entry is written in the same transaction as the change that requires it, so no work is lost.
/// A lease names its holder and moves the due time to the end of the lease. A living holder keeps
/// its entries: other relays lease only entries without a holder, or with a holder that is dead.
/// When an entry is due again for its own holder, the work has not been settled and the holder
/// continues it.
///
/// Invariant: an entry is deleted or marked dead only in the transaction that records the reason.
/// The reason is the outcome of its work, or a change that makes the work unnecessary. Until then
/// the entry stays, and its work is attempted at least once.
///
/// Failures:
/// - The relay dies: `FailureDetector` declares it dead, its entries lose their holder, and another
///   relay leases them when they are due. The push service or gateway may get the same id twice.
/// - The relay halts for long and is taken for dead: `settle` returns false if another relay has
///   settled the entry, and `postpone` returns false if another relay holds it. The relay then logs
///   `overtaken`.
/// - The store is slow, so a lease ends during an attempt: `inFlight` prevents a second attempt.
/// - The store fails after an attempt: `unsettled` keeps the outcome and writes it in a later
///   round.
/// - An entry cannot be read: it is set aside, see `FailedEntry.swift`.
///
/// Tests: `RelayTests/DeadRelayTests.swift`, `HaltedRelayTests.swift`, `DyingRelayTests.swift`,
/// `DeadlineTests.swift` and `ForgedEntryTests.swift`.
extension Relay {
    /// The duration of a lease, longer than any push may take. After it, the entry is due again.
    static let lease = Duration.seconds(15)
    static let leaseSize = 100

    /// Does the due work of the outbox. The daemon's timer calls this once a second. A full round
    /// starts another one at once.
    public func processDueEntries() async {
        await recordSeen()
        let now = time.now()
        let lease = OutboxLease(
            id: operations.draw(), relay: id, now: now, leasedUntil: now + Self.lease,
            messagesLeasedUntil: now + Self.messageLease, limit: Self.leaseSize, skipped: leasedMessages.full)
        let found = try? await withStore("outbox") { () async throws(StoreFailure) in try await store.lease(lease) }
        guard let found else { return }
        for entry in found.rows {
            if let kind = entry.messageKind {
                deliver(entry, kind)
            } else {
                spawn { await entry.tenant.run { await self.process(entry) } }
            }
        }
        await setAside(found.failed, "outbox")
        if found.rows.count + found.failed.count == Self.leaseSize { spawn { await self.processDueEntries() } }
    }

    /// Does the work of an entry that is no message.
    private func process(_ entry: LeasedEntry) async {
        switch entry.kind {
        case .push: await redeliver(entry)
        case .mail, .sms: break
        case .expiry: await expire(entry)
        case .next: await continueCascade(entry)
        case .recovery: await announce(entry.id)
        }
    }

    private func redeliver(_ entry: LeasedEntry) async {
        if let known = unsettled.take(entry.id) { return await write(known, as: known.operation.repeated) }
        let found = await attending(entry.id) { () async throws(Refusal) in
            try await withStore("outbox") { () async throws(StoreFailure) in try await store.push(entry.id) }
        }
        guard let row = found ?? nil else { return }
        let shown = Context.shownInPush(row.context)
        let push = Push(
            id: entry.id, challenge: row.challenge, user: row.user, device: row.device,
            deviceToken: row.deviceToken, environment: row.environment,
            // If the policy cannot be read any more, the push shows the least, because the website
            // may have chosen minimal detail.
            detail: (try? policies.policy(changedBy: row.policy))?.pushDetail ?? .minimal, website: row.website,
            service: shown.service, ip: shown.ip, place: shown.place, askedAt: row.askedAt, expiresAt: row.expiresAt,
            deliverBy: Push.deliverBy(row.askedAt, row.expiresAt, at: time.now()), attempts: row.attempts)
        await deliver(push)
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

extension LeasedEntry {
    /// The website on whose behalf it is, so that the work of one website does not delay another's.
    var tenant: Tenant { website.map { .website($0) } ?? .relay }

    var messageKind: MessageKind? {
        switch kind {
        case .mail: .mail
        case .sms: .sms
        case .push, .next, .expiry, .recovery: nil
        }
    }
}
