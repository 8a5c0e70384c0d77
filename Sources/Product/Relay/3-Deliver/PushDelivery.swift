import DeliveryOutcomes
import Domain
import Log
import World

/// A push on its way to one phone, with what the relay itself wants to know of it.
struct PushDelivery: Sendable {
    let push: Push
    let device: DeviceID
    let askedAt: Timestamp
    /// How often it has been tried before.
    var attempts = 0
}

/// What became of a push, until the store has it too.
struct SettledPush: Sendable {
    let delivery: PushDelivery
    let settlement: PushSettlement
    let isOurFault: Bool
    /// It may be written already: a store that goes away at a commit does not say.
    let operation: OperationID
}

extension PushDelivery {
    /// A push that was left behind may be with the phone or not, so it is tried once more, however late; for so long.
    static let lastTry = Duration.seconds(9)
    /// What is put back is taken up again by the next round, which may be a little late.
    static let round = Duration.seconds(2)

    /// By then it is known whether the user can be reached by a push, so that the next factor has its time.
    static func end(of askedAt: Timestamp, _ expiresAt: Timestamp) -> Timestamp {
        askedAt + (expiresAt - askedAt) / 3
    }

    /// By when a try that begins now has to be over.
    static func deliverBy(_ askedAt: Timestamp, _ expiresAt: Timestamp, at now: Timestamp) -> Timestamp {
        let end = end(of: askedAt, expiresAt)
        return now < end ? end : min(now + lastTry, expiresAt)
    }

    /// Whether there is time for another try that begins then.
    func mayWait(until due: Timestamp) -> Bool { due + Self.round <= Self.end(of: askedAt, push.expiresAt) }
}

extension Relay {
    /// A push that was written down leaves.
    func send(_ delivery: PushDelivery) {
        log.info(
            "push.queued",
            [
                .challenge: delivery.push.challenge.text, .device: delivery.device.text, .push: delivery.push.id.text,
            ])
        spawn { await self.deliver(delivery) }
    }

    /// Once at a time: its lease may be over before it is, where the store is slow or the clock is set.
    func deliver(_ delivery: PushDelivery) async {
        guard inFlight.begin(delivery.push.id) else { return }
        defer { inFlight.end(delivery.push.id) }
        await attempt(delivery)
    }

    private func attempt(_ delivery: PushDelivery) async {
        let message = delivery.push
        guard let push else { return await settle(delivery, .undeliverable, "no push service") }
        // Given up, suspended, or refused for good since it was asked.
        guard !message.deviceToken.isEmpty else { return await settle(delivery, .undeliverable, "no push token") }
        guard time.now() < message.expiresAt else { return await settle(delivery, .expired, "expired unsent") }
        let outcome = await push.send(message)
        metrics.pushed(outcome)
        let now = time.now()
        switch outcome {
        case .accepted: await settle(delivery, .sent, nil)
        case .tokenDead(let since, let reason):
            await settle(delivery, .refused, reason, tokenDeadSince: since ?? now)
        // Whatever kept it: there is nobody to send it to any more.
        case _ where now >= message.expiresAt: await settle(delivery, .expired, outcome.reason)
        case .credentialFault(let reason), .badRequest(let reason):
            await settle(delivery, .undeliverable, reason, isOurFault: true)
        case .declined(let reason): await settle(delivery, .undeliverable, reason)
        case .ambiguous(let reason) where delivery.attempts > 0: await settle(delivery, .undeliverable, reason)
        // Once more under the same id: the phone shows one message however often it comes.
        case .ambiguous(let reason): await postpone(delivery, by: .seconds(1), reason)
        case .retryAfter(let pause, let reason): await postpone(delivery, by: pause, reason)
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

    /// What is known of a push, once: the log says what the store says.
    func write(_ known: SettledPush, as operation: Operation) async {
        let (delivery, settlement) = (known.delivery, known.settlement)
        let step = settlement.step
        let isFirst = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.settle(settlement, as: operation)
        }
        // The row stays leased to us; it is due again when the lease is over.
        guard let isFirst else {
            return unsettled.keep(known, of: delivery.push.id, until: delivery.push.expiresAt, at: time.now())
        }
        // An answer came first, say: the push changes nothing any more.
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
        // A relay that was halted for long, and taken for dead: another one has seen to it. Where the store does not say,
        // the row is due again when its lease is over.
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

extension PushOutcome {
    /// Nil where there is nothing to explain.
    fileprivate var reason: String? {
        switch self {
        case .accepted: nil
        case .tokenDead(_, let reason), .retryAfter(_, let reason), .credentialFault(let reason),
            .badRequest(let reason), .declined(let reason), .ambiguous(let reason):
            reason
        }
    }
}
