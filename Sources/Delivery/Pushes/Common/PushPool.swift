import DeliveryOutcomes
import EventLoop
import HTTP
import HTTP2
import Log
import World

/// The connections of one loop to one host under one identity, and the pushes that wait for them.
///
/// The pool has `PushOptions.connections` slots. Each slot keeps one connection open and replaces
/// it when it is lost. A push goes to the best open connection with a free stream; without one it
/// waits in the queue.
///
/// Invariant: an unsettled push is either in the queue or on one connection, and it gets exactly
/// one outcome. Its timer, set in `PushLoop.send`, settles it at `PendingPush.end` at the latest.
/// The pool sends a push again only if the service certainly did not process it, or if the verdict
/// on the answer is `repeatElsewhere`. If the answer is lost, the outcome is ambiguous; the
/// caller may then send the same push again.
///
/// Failures:
/// - The host cannot be reached: pushes that end before the next connection attempt are returned at
///   once.
/// - The service refuses the credential: the circuit breaker of the identity returns all pushes
///   except one trial. If it issues no token for now, pushes wait or are returned as above.
/// - The credential is replaced: this pool answers what it has sent, and its queue moves to the new
///   pool.
/// - A connection stops answering: see `PushConnection`.
///
/// Tests: `PoolTests`, `PoolSimulationTests` (random faults in virtual time), `PoolShutdownTests`,
/// `TwoHostsTests` and `UnsentRequestTests`.
final class PushPool {
    let endpoint: PushEndpoint
    let identity: PushIdentity
    let loop: EventLoop
    let shared: PushSharedState
    private let loopState: PushLoop
    private var slots: [PushConnectionSlot] = []
    /// Connections that take no new pushes but still answer what was sent.
    private var retired: [PushConnection] = []
    private var queue = PendingPushQueue()
    private var cached: (form: RequestForm, bearer: String?)
    private(set) var isClosed = false
    /// The reason of the last failure to have a connection.
    var lastFailure = "not connected"

    init(_ endpoint: PushEndpoint, _ identity: PushIdentity, loopState: PushLoop, dial: @escaping PushConnector) {
        self.endpoint = endpoint
        self.identity = identity
        self.loopState = loopState
        loop = loopState.loop
        shared = loopState.shared
        cached = (shared.dialect.form(authority: endpoint.authority, authorization: nil), nil)
        slots = (0..<max(1, shared.options.connections)).map { _ in PushConnectionSlot(self, dial: dial) }
    }

    func open(urgent: Bool) {
        for (number, slot) in slots.enumerated() { slot.open(urgent: urgent && number == 0) }
        // A token that has to be issued is there before the first push, too.
        _ = identity.authorization?.isReady(for: self)
    }

    /// The addresses of the connections that are open or being opened.
    var addresses: [String] { slots.compactMap(\.address) }

    /// Whether pushes wait while no connection is open or being opened.
    var isInNeed: Bool {
        !queue.isEmpty && !slots.contains { $0.connection != nil || $0.isConnecting }
    }

    /// Returns the fields that all requests share now, and the token in them; nil if the token is
    /// missing.
    func form() -> (form: RequestForm, bearer: String?)? {
        guard let authorization = identity.authorization else { return cached }
        guard let bearer = authorization.value(later: { [loop] in loop.post($0) }) else { return nil }
        if bearer != cached.bearer {
            cached = (shared.dialect.form(authority: endpoint.authority, authorization: bearer), bearer)
        }
        return cached
    }

    /// Handles the result of an attempt to obtain a token.
    func authorizationChanged() {
        if case .refused(let reason)? = identity.authorization?.failure {
            identity.distrust(
                reason, from: endpoint, at: shared.time.instant, [.host: endpoint.host, .reason: reason])
            refuseAll(.misconfigured(.service, reason: reason), .credential)
        }
        slotWaits()
        pump()
    }

    // MARK: Pushes

    /// Sends the push, or queues it until a stream is free. The push is returned at once in three
    /// cases: the circuit breaker refuses it, the queue is full, or no connection can be opened in
    /// time.
    ///
    /// - Parameter again: whether it was sent before or waited in another pool; then it goes before
    ///   the others and the queue's limit does not apply.
    func take(_ push: PendingPush, again: Bool) {
        push.pool = self
        // A trial continues until it has its answer.
        if push.triedFor !== identity {
            switch identity.entry(to: endpoint, at: shared.time.instant) {
            case .free: break
            case .trial: push.triedFor = identity
            case .refused(let reason): return leave(push, .misconfigured(.service, reason: reason), .credential)
            }
        }
        if queue.isEmpty, let connection = choose(), connection.begin(push) { return loopState.touch() }
        guard again || queue.hasRoom(for: push.push.owner, capacity: shared.options.capacity) else {
            return leave(push, .retry(after: .seconds(1), reason: "\(queue.count) pushes are already queued"), .full)
        }
        if let next = unreachableUntil, next >= push.end { return leave(push, unreachable(next), .unreachable) }
        if again { queue.requeue(push) } else { queue.append(push) }
        loopState.touch()
        if isInNeed { _ = slots.contains { $0.retryNow() } }
    }

    /// Sends waiting pushes while streams are free.
    func pump() {
        loopState.touch()
        while !queue.isEmpty, let connection = choose(), let pending = queue.popFirst() {
            // Its timer is late because the whole turn of the loop is late.
            guard pending.end > loop.now else {
                late(pending)
                continue
            }
            if !connection.begin(pending) { queue.requeue(pending) }
        }
    }

    /// Returns the least loaded connection with room. A suspected connection is chosen only if all
    /// open connections are suspected.
    private func choose() -> PushConnection? {
        guard identity.authorization?.isReady(for: self) ?? true else { return nil }
        let now = loop.now
        var best: PushConnection?
        var hasHealthy = false
        for slot in slots {
            guard let connection = slot.connection, connection.isOpen else { continue }
            if !connection.isSuspected {
                if !hasHealthy { best = nil }
                hasHealthy = true
            } else if hasHealthy {
                continue
            }
            guard connection.room > 0 else { continue }
            if let other = best, !connection.isBetter(than: other, at: now) { continue }
            best = connection
        }
        return best
    }

    /// Handles a push whose deadline has passed.
    func overdue(_ push: PendingPush) {
        push.timer = nil
        loopState.touch()
        if let connection = push.connection {
            guard connection.abandon(push) else { return late(push) }
            return unanswered(push, .timeout, "no answer in time")
        }
        queue.settled(push)
        late(push)
    }

    /// Settles a push that reached its deadline before it was sent.
    private func late(_ push: PendingPush) {
        let unauthorized = identity.authorization?.failure?.reason
        let outcome: DeliveryOutcome =
            unauthorized != nil || slots.allSatisfy { $0.connection == nil }
            ? .unavailable(after: .seconds(1), reason: unauthorized ?? lastFailure)
            : .retry(after: .seconds(1), reason: "no stream in time")
        leave(push, outcome, push.expiresThen ? .expired : .late)
    }

    // MARK: Outcomes

    /// Applies the verdict on an answer to the push, the connection and the credential.
    func answered(_ pending: PendingPush, _ answer: any PushAnswer, by connection: PushConnection) {
        let (push, meaning) = (pending.push, answer.meaning)
        let duration = loop.now - pending.sentAt
        shared.log.debug(
            shared.dialect.events.answer,
            [.push: push.id, .milliseconds: duration.wholeMilliseconds, .status: answer.status])
        shared.observer?.answered(status: answer.status, reason: answer.label, after: duration)
        let verdict = answer.verdict(requestState(pending, meaning))
        identity.learn(answer, verdict, from: endpoint, bearer: pending.bearer, at: shared.time.instant)
        shared.learn(meaning, push.tokenEnvironment)
        if meaning.provesCredential { connection.proved() }
        switch verdict.connection {
        case .keep: connection.served()
        case .replace:
            // The connection works, since only the credential is refused: mark it as working. After
            // a server fault or an idle timeout it is not marked.
            if meaning == .expiredCredential || meaning == .unrelatedKey { connection.served() }
            connection.retire()
        }
        if meaning != .accepted { recordVerdict(answer, verdict, push) }
        switch verdict.push {
        case .settle(let outcome):
            if case .unregistered = outcome { shared.observer?.tokenRetired(reason: answer.label) }
            pending.settle(outcome, on: loop)
        case .repeatElsewhere:
            pending.repeatedFor.insert(meaning)
            loopState.dispatch(pending, again: true)
        }
        if verdict.credential == .distrust { refuseAll(.misconfigured(.service, reason: answer.text), .credential) }
    }

    private func requestState(_ push: PendingPush, _ meaning: AnswerMeaning) -> PushRequestState {
        var state = PushRequestState(sentAt: Timestamp(milliseconds: 0), repeatedFor: push.repeatedFor)
        switch meaning {
        case .badToken, .foreignToken, .goneToken:
            state.sentAt = shared.time.now() - (loop.time.instant() - push.sentAt)
            state.suspectsEnvironment = shared.suspects(push.push.tokenEnvironment)
        case .expiredCredential:
            state.mayRenew = push.bearer.flatMap { identity.authorization?.mayFollow($0) } ?? false
        case .unavailable:
            state.attempts = push.push.attempts
            state.jitter = Double(shared.randomness.number(below: 1001)) / 1000
        default: break
        }
        return state
    }

    /// Logs a refusal, as an error if an operator has to look at it.
    private func recordVerdict(_ answer: any PushAnswer, _ verdict: PushVerdict, _ push: any PushMessage) {
        let fields: LogFields = [
            .push: push.id, .status: answer.status, .reason: answer.reason,
            .environment: push.tokenEnvironment?.rawValue,
        ]
        if verdict.alarm {
            shared.log.error(shared.dialect.events.refused, fields)
        } else {
            shared.log.info(shared.dialect.events.refused, fields)
        }
    }

    /// Dispatches a push again that the service certainly did not process. After `refusalLimit`
    /// refusals it is settled instead.
    func refused(_ push: PendingPush, _ reason: String) {
        push.refusals += 1
        guard push.refusals <= PendingPush.refusalLimit else {
            return leave(push, .retry(after: .seconds(1), reason: reason), .refused)
        }
        loopState.dispatch(push, again: true)
    }

    /// Settles a push that was sent and whose answer is lost.
    func unanswered(_ push: PendingPush, _ why: PushUnansweredReason, _ reason: String) {
        shared.observer?.unanswered(why, after: loop.now - push.sentAt)
        push.settle(.ambiguous(reason), on: loop)
    }

    /// Settles a push without sending it.
    private func leave(_ push: PendingPush, _ outcome: DeliveryOutcome, _ why: PushUnsentReason) {
        loopState.touch()
        shared.observer?.unsent(why)
        push.settle(outcome, on: loop)
    }

    private func refuseAll(_ outcome: DeliveryOutcome, _ why: PushUnsentReason) {
        while let pending = queue.popFirst() { leave(pending, outcome, why) }
    }

    // MARK: Connections

    /// The time of the next attempt to obtain a token or a connection; nil if there is one, or if it
    /// can come at once.
    private var unreachableUntil: Instant? {
        if let attempt = identity.authorization?.nextAttempt { return attempt }
        var next: Instant?
        for slot in slots {
            guard let attempt = slot.nextAttempt else { return nil }
            next = min(attempt, next ?? attempt)
        }
        return next
    }

    private func unreachable(_ next: Instant) -> DeliveryOutcome {
        .unavailable(
            after: max(next - loop.now, .seconds(1)), reason: identity.authorization?.failure?.reason ?? lastFailure)
    }

    /// Settles the waiting pushes that end before the next connection attempt.
    func slotWaits() {
        guard !queue.isEmpty, let next = unreachableUntil else { return }
        var left: [PendingPush] = []
        while let pending = queue.popFirst() {
            if pending.end <= next { leave(pending, unreachable(next), .unreachable) } else { left.append(pending) }
        }
        for pending in left.reversed() { queue.requeue(pending) }
    }

    func retire(_ connection: PushConnection) {
        retired.append(connection)
        connection.retire()
    }

    func ended(_ connection: PushConnection) {
        retired.removeAll { $0 === connection }
        loopState.touch()
        if isClosed, retired.isEmpty { end() }
    }

    /// Retires the pool after a change of credential. Pushes already sent still get their answers;
    /// waiting pushes go to the pool that replaces this one.
    func yieldConnection() {
        isClosed = true
        let open = slots.compactMap(\.connection)
        for slot in slots { slot.stop() }
        for connection in open { connection.dismiss() }
        while let pending = queue.popFirst() { loopState.dispatch(pending, again: true) }
        if retired.isEmpty { end() }
    }

    /// Breaks the reference cycle between the pool and its slots, which would keep both alive.
    private func end() {
        slots = []
        loopState.left(self)
    }

    func close() {
        isClosed = true
        let open = slots.compactMap(\.connection) + retired
        for slot in slots { slot.stop() }
        refuseAll(.retry(after: .seconds(1), reason: "closed"), .closed)
        for connection in open {
            connection.dismiss()
            connection.wire.close()
        }
        end()
    }

    // MARK: Gauges

    func add(to gauges: inout PushGauges.Reading) {
        let open = slots.compactMap(\.connection)
        gauges.connections += open.count
        gauges.streamLimit += open.reduce(0) { $0 + $1.wire.peerMaxConcurrentStreams }
        gauges.inFlight += (open + retired).reduce(0) { $0 + $1.wire.activeStreams }
        gauges.queued += queue.count
        if let oldest = queue.first()?.since { gauges.oldest = min(oldest, gauges.oldest ?? oldest) }
    }
}
