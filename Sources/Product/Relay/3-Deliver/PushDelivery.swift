import DeliveryOutcomes
import Domain
import Log
import World

/// The outcome of a push, kept until the store has it.
struct SettledPush: Sendable {
    let push: Push
    let settlement: PushSettlement
    let isOurFault: Bool
    /// The operation of the first write. That write may have succeeded: a store that fails during a
    /// commit does not report the result.
    let operation: Operation
}

extension Push {
    /// The time limit of a late attempt. If a relay died, its push may or may not have arrived, so
    /// another attempt follows, however late.
    static let lastTry = Duration.seconds(9)
    /// The pause before another attempt if the push service names none.
    static let pause = Duration.seconds(5)
    /// The longest delay until the next outbox round leases a rescheduled push.
    static let round = Duration.seconds(2)

    /// The least pause before another attempt while the service is down. It grows from 5 to 20
    /// seconds, because many pushes wait then.
    var outagePause: Duration { Self.pause * (1 << min(attempts, 2)) }

    /// The time by which the relay knows whether a push can reach the user: a third of the
    /// challenge's lifetime. The rest is left for the next factor.
    static func end(of askedAt: Timestamp, _ expiresAt: Timestamp) -> Timestamp {
        askedAt + (expiresAt - askedAt) / 3
    }

    /// The time by which an attempt that begins now must end.
    static func deliverBy(_ askedAt: Timestamp, _ expiresAt: Timestamp, at now: Timestamp) -> Timestamp {
        let end = end(of: askedAt, expiresAt)
        return now < end ? end : min(now + lastTry, expiresAt)
    }

    /// Whether enough time is left for another attempt that begins at `due`, and for the next factor.
    func mayWait(until due: Timestamp) -> Bool { due + Self.round <= Self.end(of: askedAt, expiresAt) }

    /// Whether another attempt that begins at `due` can still reach the user.
    func isInTime(at due: Timestamp) -> Bool { due + Self.round <= expiresAt }
}

/// The delivery of a push: one attempt hands the push to the push service, and the outcome is
/// recorded or a later attempt is planned.
///
/// Invariants: this relay makes one attempt for an entry at a time (`inFlight`). A push is
/// rescheduled only within the first third of the challenge's lifetime, so that enough time is left
/// for the next factor. While its service is down, it is rescheduled until the challenge ends, and
/// the next factor begins beside it. After an attempt with an ambiguous outcome the push is sent once more with
/// the same id.
///
/// Failures: the store fails after the attempt. The outcome then stays in memory (`unsettled`) and
/// is written when the lease ends, without a second attempt.
///
/// Tests: `RelayTests/PushDeliveryTests.swift` and `DeadlineTests.swift`.
extension Relay {
    /// Sends a push that was just written to the outbox.
    func send(_ push: Push) {
        log.info(
            "push.queued",
            [.challenge: push.challenge.text, .device: push.device.text, .push: push.id.text])
        spawn { await self.deliver(push) }
    }

    /// Delivers a push, unless this relay is already delivering it. The lease may end before the
    /// attempt if the store is slow or the clock was changed.
    func deliver(_ push: Push) async {
        guard inFlight.begin(push.id) else { return }
        defer { inFlight.end(push.id) }
        await attempt(push)
    }

    private func attempt(_ push: Push) async {
        guard let courier = self.push else { return await settle(push, .undeliverable, "no push service") }
        // The phone was unbound or suspended, or its token was refused for good, since the
        // challenge was opened.
        guard !push.deviceToken.isEmpty else { return await settle(push, .undeliverable, "no device token") }
        guard time.now() < push.expiresAt else { return await settle(push, .expired, "expired unsent") }
        let outcome = await courier.send(push)
        metrics.pushed(outcome)
        note(outcome, of: push, by: courier)
        let now = time.now()
        switch outcome {
        case .accepted: await settle(push, .sent, nil)
        case .unregistered(let since, let reason):
            await settle(push, .refused, reason, tokenDeadSince: since ?? now)
        // Whatever the outcome was, the challenge has expired and no further attempt follows.
        case _ where now >= push.expiresAt: await settle(push, .expired, outcome.reason)
        case .misconfigured(_, let reason): await settle(push, .undeliverable, reason, isOurFault: true)
        case .declined(let reason): await settle(push, .undeliverable, reason)
        case .ambiguous(let reason) where push.attempts > 0: await settle(push, .undeliverable, reason)
        // The same push is sent once more with the same id: the phone shows one notification,
        // however often it arrives.
        case .ambiguous(let reason): await postpone(push, by: .seconds(1), reason)
        case .retry(let pause, let reason), .unavailable(let pause, let reason):
            await postpone(push, by: pause ?? Push.pause, reason)
        }
    }

    private func settle(
        _ push: Push, _ step: StepState, _ reason: String?, tokenDeadSince: Timestamp? = nil, isOurFault: Bool = false
    ) async {
        let settlement = PushSettlement(of: push, step, reason, tokenDeadSince: tokenDeadSince, at: time.now())
        let operation = operations.new()
        await write(
            SettledPush(push: push, settlement: settlement, isOurFault: isOurFault, operation: operation),
            as: operation)
    }

    /// Records the outcome of a push once: the log reports only what the store has.
    func write(_ known: SettledPush, as operation: Operation) async {
        let (push, settlement) = (known.push, known.settlement)
        let step = settlement.step
        // A push that a phone did not need does not begin the next factor.
        try? await recordSeen(settlement.challenge)
        let isFirst = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.settle(settlement, as: operation)
        }
        // This relay keeps the lease. The entry is due again when the lease ends.
        guard let isFirst else { return unsettled.retain(known, of: push.id, until: push.expiresAt, at: time.now()) }
        // For example, the user has answered already. The push changes nothing any more.
        guard isFirst else { return log.info("push.overtaken", fields(of: push, settlement.reason, step)) }
        let fields = fields(of: push, settlement.reason)
        switch step {
        case .sent:
            metrics.logins.pushed(after: settlement.at - push.askedAt)
            log.info("push.accepted", fields)
        case .refused: log.info("push.refused", fields)
        case .expired: log.info("push.expired", fields)
        case _ where known.isOurFault: log.error("push.undeliverable", fields)
        default: log.warning("push.undeliverable", fields)
        }
        if step != .sent { await advance(settlement.challenge, because: .undeliverable) }
    }

    private func postpone(_ push: Push, by pause: Duration, _ reason: String) async {
        let isDown = isServiceDown(of: push)
        let due = time.now() + (isDown ? max(pause, push.outagePause) : pause)
        let leavesTime = push.mayWait(until: due)
        guard leavesTime || isDown && push.isInTime(at: due) else {
            return await settle(push, .undeliverable, reason)
        }
        let isOurs = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.postpone(push.id, by: id, until: due)
        }
        // This relay halted for long and was taken for dead, and another relay has handled the
        // entry. If the store does not answer, the entry is due again when the lease ends.
        guard isOurs != false else { return log.info("push.overtaken", fields(of: push, reason)) }
        log.warning("push.postponed", fields(of: push, reason))
        if !leavesTime { await beginBesidePush(of: push.challenge) }
    }

    private func fields(of push: Push, _ reason: String?, _ outcome: StepState? = nil) -> LogFields {
        [
            .challenge: push.challenge.text, .device: push.device.text, .push: push.id.text,
            .outcome: outcome?.rawValue, .reason: reason,
            .milliseconds: (time.now() - push.askedAt).wholeMilliseconds,
        ]
    }
}
