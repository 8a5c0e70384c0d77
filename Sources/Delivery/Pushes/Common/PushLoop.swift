import DeliveryOutcomes
import EventLoop
import HTTP2
import Log
import World

/// The part of the sender on one loop. It gives each push to a pool and ensures that the push gets
/// an outcome.
final class PushLoop: TurnEndObserver {
    let loop: EventLoop
    let shared: PushSharedState
    let gauges: PushGauges
    private let dial: (PushEndpoint, PushIdentity) -> PushConnector
    private var generation: Int
    private var identity: PushIdentity
    private var pools: [PushEndpoint: PushPool] = [:]
    /// The pool of the last push, which is usually the pool of the next one too.
    private var last: (environment: APNsNotification.Environment?, pool: PushPool)?
    /// The pools of former identities that still wait for answers.
    private var leaving: [PushPool] = []
    private var isClosed = false
    private var isTouched = false

    init(
        loop: EventLoop, shared: PushSharedState, gauges: PushGauges,
        dial: ((PushEndpoint, PushIdentity) -> PushConnector)? = nil
    ) {
        self.loop = loop
        self.shared = shared
        self.gauges = gauges
        self.dial =
            dial ?? { endpoint, identity in
                HTTP2Client.dial(endpoint, on: loop, tls: identity.tls, options: shared.options, log: shared.log)
            }
        generation = shared.generation
        identity = shared.identity
    }

    func connectEagerly() {
        guard !isClosed else { return }
        _ = pool(to: shared.endpoint, urgent: false)
    }

    private func pool(to endpoint: PushEndpoint, urgent: Bool) -> PushPool {
        if let pool = pools[endpoint] { return pool }
        let pool = PushPool(endpoint, identity, loopState: self, dial: dial(endpoint, identity))
        pools[endpoint] = pool
        pool.open(urgent: urgent)
        return pool
    }

    private func pool(for environment: APNsNotification.Environment?) -> PushPool {
        if let last, last.environment == environment { return last.pool }
        let pool = pool(to: shared.dialect.endpoint(shared.endpoint, for: environment), urgent: true)
        last = (environment, pool)
        return pool
    }

    // MARK: Pushes

    func send(_ push: any PushMessage, completion: @escaping (DeliveryOutcome) -> Void) {
        func refuse(_ outcome: DeliveryOutcome, _ why: PushUnsentReason) {
            shared.observer?.unsent(why)
            completion(outcome)
        }
        guard !isClosed else { return refuse(.retry(after: .seconds(1), reason: "closed"), .closed) }
        if let fault = push.fault { return refuse(.misconfigured(.message, reason: fault), .invalid) }
        adopt()
        let left = push.end - shared.time.now()
        guard left > .zero else { return refuse(.retry(after: .seconds(1), reason: "expired unsent"), .expired) }
        let longest = shared.options.deadline
        let now = loop.time.instant()
        let pending = PendingPush(
            push, since: now, end: now + min(left, longest), expiresThen: left < longest, completion: completion)
        pending.timer = loop.schedule(at: pending.end) { pending.pool?.overdue(pending) }
        dispatch(pending, again: false)
    }

    /// Gives the push to the pool of its environment.
    ///
    /// - Parameter again: whether it was sent before, or waited in another pool.
    func dispatch(_ push: PendingPush, again: Bool) {
        // A connection that closes returns its pushes. A closed loop has no queue for them.
        guard !isClosed else {
            shared.observer?.unsent(.closed)
            return push.settle(.retry(after: .seconds(1), reason: "closed"), on: loop)
        }
        let pool = pool(for: push.push.tokenEnvironment)
        pool.take(push, again: again)
        if again { pool.pump() }
    }

    // MARK: Change of credential

    /// Switches to the new credential if it has changed: opens new pools and retires the former
    /// ones.
    func adopt() {
        guard generation != shared.generation, !isClosed else { return }
        generation = shared.generation
        identity = shared.identity
        let former = pools
        pools = [:]
        last = nil
        leaving += former.values
        // The new pools open at once, so that the next push does not wait.
        for endpoint in former.keys { _ = pool(to: endpoint, urgent: false) }
        for pool in former.values { pool.yieldConnection() }
    }

    /// Forgets a pool that has nothing left to answer.
    func left(_ pool: PushPool) { leaving.removeAll { $0 === pool } }

    func close() {
        isClosed = true
        for pool in Array(pools.values) + leaving { pool.close() }
        last = nil
        pools = [:]
        leaving = []
    }

    // MARK: Gauges

    /// Marks the gauges as outdated; they are published at the end of the turn.
    func touch() {
        guard !isTouched else { return }
        isTouched = true
        loop.atTurnEnd(self)
    }

    func turnEnded() {
        isTouched = false
        var reading = PushGauges.Reading()
        for pool in pools.values { pool.add(to: &reading) }
        for pool in leaving { pool.add(to: &reading) }
        gauges.publish(reading)
    }
}
