import DeliveryOutcomes
import Domain
import Log
import World

/// A push on its way to one phone, with the data that only the relay needs.
struct PushDelivery: Sendable {
    let push: Push
    let device: DeviceID
    let askedAt: Timestamp
    /// The number of earlier attempts.
    var attempts = 0
}

/// The outcome of a push, kept until the store has it.
struct SettledPush: Sendable {
    let delivery: PushDelivery
    let settlement: PushSettlement
    let isOurFault: Bool
    /// The operation of the first write. That write may have succeeded: a store that fails during a
    /// commit does not report the result.
    let operation: OperationID
}

extension PushDelivery {
    /// The time limit of a late attempt. If a relay died, its push may or may not have arrived, so
    /// another attempt follows, however late.
    static let lastTry = Duration.seconds(9)
    /// The pause before another attempt if the push service names none.
    static let pause = Duration.seconds(5)
    /// The longest delay until the next outbox round leases a rescheduled push.
    static let round = Duration.seconds(2)

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

    /// Whether enough time is left for another attempt that begins at `due`.
    func mayWait(until due: Timestamp) -> Bool { due + Self.round <= Self.end(of: askedAt, push.expiresAt) }
}

/// The delivery of a push: one attempt hands the push to the push service, and the outcome is
/// recorded or a later attempt is planned.
///
/// Invariants: this relay makes one attempt for an entry at a time (`inFlight`). A push is
/// rescheduled only within the first third of the challenge's lifetime, so that enough time is left
/// for the next factor. After an attempt with an ambiguous outcome the push is sent once more with
/// the same id.
///
/// Failures: the store fails after the attempt. The outcome then stays in memory (`unsettled`) and
/// is written when the lease ends, without a second attempt.
///
/// Tests: `RelayTests/PushDeliveryTests.swift` and `DeadlineTests.swift`.
extension Relay {
    /// Sends a push that was just written to the outbox.
    func send(_ delivery: PushDelivery) {
        log.info(
            "push.queued",
            [
                .challenge: delivery.push.challenge.text, .device: delivery.device.text, .push: delivery.push.id.text,
            ])
        spawn { await self.deliver(delivery) }
    }

    /// Delivers a push, unless this relay is already delivering it. The lease may end before the
    /// attempt if the store is slow or the clock was changed.
    func deliver(_ delivery: PushDelivery) async {
        guard inFlight.begin(delivery.push.id) else { return }
        defer { inFlight.end(delivery.push.id) }
        await attempt(delivery)
    }

    private func attempt(_ delivery: PushDelivery) async {
        let message = delivery.push
        guard let push else { return await settle(delivery, .undeliverable, "no push service") }
        // The phone was unbound or suspended, or its token was refused for good, since the
        // challenge was opened.
        guard !message.deviceToken.isEmpty else { return await settle(delivery, .undeliverable, "no push token") }
        guard time.now() < message.expiresAt else { return await settle(delivery, .expired, "expired unsent") }
        let outcome = await push.send(message)
        metrics.pushed(outcome)
        let now = time.now()
        switch outcome {
        case .accepted: await settle(delivery, .sent, nil)
        case .unregistered(let since, let reason):
            await settle(delivery, .refused, reason, tokenDeadSince: since ?? now)
        // Whatever the outcome was, the challenge has expired and no further attempt follows.
        case _ where now >= message.expiresAt: await settle(delivery, .expired, outcome.reason)
        case .misconfigured(_, let reason): await settle(delivery, .undeliverable, reason, isOurFault: true)
        case .declined(let reason): await settle(delivery, .undeliverable, reason)
        case .ambiguous(let reason) where delivery.attempts > 0: await settle(delivery, .undeliverable, reason)
        // The same push is sent once more with the same id: the phone shows one notification,
        // however often it arrives.
        case .ambiguous(let reason): await postpone(delivery, by: .seconds(1), reason)
        case .retry(let pause, let reason): await postpone(delivery, by: pause ?? PushDelivery.pause, reason)
        }
    }

    private func settle(
        _ delivery: PushDelivery, _ step: StepState, _ reason: String?, tokenDeadSince: Timestamp? = nil,
        isOurFault: Bool = false
    ) async {
        let settlement = PushSettlement(of: delivery.push, step, reason, tokenDeadSince: tokenDeadSince, at: time.now())
        let operation = operations.new()
        await write(
            SettledPush(
                delivery: delivery, settlement: settlement, isOurFault: isOurFault, operation: operation.id),
            as: operation)
    }

    /// Records the outcome of a push once: the log reports only what the store has.
    func write(_ known: SettledPush, as operation: Operation) async {
        let (delivery, settlement) = (known.delivery, known.settlement)
        let step = settlement.step
        let isFirst = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.settle(settlement, as: operation)
        }
        // This relay keeps the lease. The entry is due again when the lease ends.
        guard let isFirst else {
            return unsettled.keep(known, of: delivery.push.id, until: delivery.push.expiresAt, at: time.now())
        }
        // For example, the user has answered already. The push changes nothing any more.
        guard isFirst else { return log.info("push.overtaken", fields(of: delivery, settlement.reason, step)) }
        let fields = fields(of: delivery, settlement.reason)
        switch step {
        case .sent: log.info("push.accepted", fields)
        case .refused: log.info("push.refused", fields)
        case .expired: log.info("push.expired", fields)
        case _ where known.isOurFault: log.error("push.undeliverable", fields)
        default: log.warning("push.undeliverable", fields)
        }
        if step != .sent { await advance(settlement.challenge, because: .undeliverable) }
    }

    private func postpone(_ delivery: PushDelivery, by pause: Duration, _ reason: String) async {
        let due = time.now() + pause
        guard delivery.mayWait(until: due) else { return await settle(delivery, .undeliverable, reason) }
        let isOurs = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.postpone(delivery.push.id, by: id, until: due)
        }
        // This relay halted for long and was taken for dead, and another relay has handled the
        // entry. If the store does not answer, the entry is due again when the lease ends.
        guard isOurs != false else { return log.info("push.overtaken", fields(of: delivery, reason)) }
        log.warning("push.postponed", fields(of: delivery, reason))
    }

    private func fields(of delivery: PushDelivery, _ reason: String?, _ outcome: StepState? = nil) -> LogFields {
        [
            .challenge: delivery.push.challenge.text, .device: delivery.device.text, .push: delivery.push.id.text,
            .outcome: outcome?.rawValue, .reason: reason,
            .milliseconds: (time.now() - delivery.askedAt).wholeMilliseconds,
        ]
    }
}
