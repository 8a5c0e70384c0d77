import DeliveryOutcomes
import EventLoop
import HTTP
import HTTP2
import Log
import World

/// One loop's connections to one host under one identity, and the pushes that wait for them.
final class APNsPool {
    let endpoint: APNsEndpoint
    let identity: APNsIdentity
    let loop: EventLoop
    let shared: APNsSharedState
    private let loopState: APNsLoop
    private var slots: [APNsConnectionSlot] = []
    /// They take nothing new, and still answer.
    private var retired: [APNsConnection] = []
    private var queue = PendingPushQueue()
    private var cached: (form: RequestForm, bearer: String?)
    private(set) var isClosed = false
    /// Why there was no connection, the last time.
    var lastFailure = "not connected"

    init(_ endpoint: APNsEndpoint, _ identity: APNsIdentity, loopState: APNsLoop, dial: @escaping APNsConnector) {
        self.endpoint = endpoint
        self.identity = identity
        self.loopState = loopState
        loop = loopState.loop
        shared = loopState.shared
        cached = (APNsRequest.form(topic: shared.topic, authority: endpoint.authority, authorization: nil), nil)
        slots = (0..<max(1, shared.options.connections)).map { _ in APNsConnectionSlot(self, dial: dial) }
    }

    func open(urgent: Bool) {
        for (number, slot) in slots.enumerated() { slot.open(urgent: urgent && number == 0) }
    }

    /// Where its connections go.
    var addresses: [String] { slots.compactMap(\.address) }

    /// Whether pushes wait and there is not even a connection on its way.
    var isInNeed: Bool {
        !queue.isEmpty && !slots.contains { $0.connection != nil || $0.isConnecting }
    }

    /// What all requests have in common now, and the provider token in it.
    func form() -> (form: RequestForm, bearer: String?) {
        guard let token = identity.token else { return cached }
        let bearer = token.bearer { [loop] in loop.post($0) }
        if bearer != cached.bearer {
            cached = (
                APNsRequest.form(topic: shared.topic, authority: endpoint.authority, authorization: bearer), bearer
            )
        }
        return cached
    }

    // MARK: Pushes

    func take(_ push: PendingPush, again: Bool) {
        push.pool = self
        // A trial goes on until it has its answer.
        if push.triedFor !== identity {
            switch identity.entry(to: endpoint, at: shared.time.instant) {
            case .free: break
            case .trial: push.triedFor = identity
            case .refused(let reason): return leave(push, .credentialFault(reason), .credential)
            }
        }
        if queue.isEmpty, let connection = choose(), connection.begin(push) { return loopState.touch() }
        guard again || queue.count < shared.options.capacity else {
            return leave(push, .retryAfter(.seconds(1), reason: "\(queue.count) pushes wait already"), .full)
        }
        if let next = unreachableUntil, next >= push.end { return leave(push, hopeless(next), .unreachable) }
        if again { queue.requeue(push) } else { queue.append(push) }
        loopState.touch()
        if isInNeed { _ = slots.contains { $0.retryNow() } }
    }

    /// Sends what waits, as far as there are streams.
    func pump() {
        loopState.touch()
        while !queue.isEmpty, let connection = choose(), let passage = queue.popFirst() {
            // Its timer is late, as the whole turn is.
            guard passage.end > loop.now else {
                late(passage)
                continue
            }
            if !connection.begin(passage) { queue.requeue(passage) }
        }
    }

    /// Of the connections that have room, the one with the least to do; one that may be dead only where all may be.
    private func choose() -> APNsConnection? {
        let now = loop.now
        var best: APNsConnection?
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

    /// Its time is over.
    func overdue(_ push: PendingPush) {
        push.timer = nil
        loopState.touch()
        if let connection = push.connection {
            guard connection.abandon(push) else { return late(push) }
            return unanswered(push, .timeout, "no answer in time")
        }
        queue.settledOne()
        late(push)
    }

    /// It has waited for as long as it may.
    private func late(_ push: PendingPush) {
        let reason = slots.allSatisfy { $0.connection == nil } ? lastFailure : "no stream in time"
        leave(push, .retryAfter(.seconds(1), reason: reason), push.expiresThen ? .expired : .late)
    }

    // MARK: What becomes of them

    func answered(_ passage: PendingPush, _ answer: APNsAnswer, by connection: APNsConnection) {
        let (push, meaning) = (passage.push, answer.meaning)
        let duration = loop.now - passage.sentAt
        shared.log.debug(
            "apns.answer",
            [.push: push.id, .milliseconds: duration.wholeMilliseconds, .status: answer.status])
        shared.observer?.answered(status: answer.status, reason: answer.label, after: duration)
        let verdict = answer.verdict(situation(passage, meaning))
        identity.learn(answer, verdict, from: endpoint, bearer: passage.bearer, at: shared.time.instant)
        shared.learn(meaning, push.environment)
        if meaning.provesCredential { connection.proved() }
        switch verdict.connection {
        case .keep: connection.served()
        case .replace:
            // It knows what it says: only one that is in trouble is to be left alone for a while.
            if meaning == .expiredCredential || meaning == .unrelatedKey { connection.served() }
            connection.retire()
        }
        if meaning != .accepted { recordVerdict(answer, verdict, push) }
        switch verdict.push {
        case .settle(let outcome):
            if case .tokenDead = outcome { shared.observer?.tokenRetired(reason: answer.label) }
            passage.settle(outcome, on: loop)
        case .repeatElsewhere:
            passage.repeatedFor.insert(meaning)
            loopState.dispatch(passage, again: true)
        }
        if verdict.credential == .distrust { refuseAll(.credentialFault(answer.text), .credential) }
    }

    private func situation(_ push: PendingPush, _ meaning: APNsAnswer.Meaning) -> APNsRequestState {
        var situation = APNsRequestState(sentAt: Timestamp(milliseconds: 0), repeatedFor: push.repeatedFor)
        switch meaning {
        case .badToken, .foreignToken, .goneToken:
            situation.sentAt = shared.time.now() - (loop.time.instant() - push.sentAt)
            situation.doubtsEnvironment = shared.doubts(push.push.environment)
        case .expiredCredential:
            situation.mayRenew = push.bearer.flatMap { identity.token?.mayFollow($0) } ?? false
        default: break
        }
        return situation
    }

    private func recordVerdict(_ answer: APNsAnswer, _ verdict: APNsVerdict, _ push: APNsNotification) {
        let fields: LogFields = [
            .push: push.id, .status: answer.status, .reason: answer.reason, .environment: push.environment.rawValue,
        ]
        if verdict.alarm {
            shared.log.error("apns.refused", fields)
        } else {
            shared.log.info("apns.refused", fields)
        }
    }

    /// The service has certainly not worked on it.
    func refused(_ push: PendingPush, _ reason: String) {
        push.refusals += 1
        guard push.refusals <= PendingPush.refusalLimit else {
            return leave(push, .retryAfter(.seconds(1), reason: reason), .refused)
        }
        loopState.dispatch(push, again: true)
    }

    func unanswered(_ push: PendingPush, _ why: APNsUnansweredReason, _ reason: String) {
        shared.observer?.unanswered(why, after: loop.now - push.sentAt)
        push.settle(.ambiguous(reason), on: loop)
    }

    private func leave(_ push: PendingPush, _ outcome: PushOutcome, _ why: APNsUnsentReason) {
        loopState.touch()
        shared.observer?.unsent(why)
        push.settle(outcome, on: loop)
    }

    private func refuseAll(_ outcome: PushOutcome, _ why: APNsUnsentReason) {
        while let passage = queue.popFirst() { leave(passage, outcome, why) }
    }

    // MARK: Connections

    /// When something will be tried again, if nothing is open or on its way.
    private var unreachableUntil: Instant? {
        var next: Instant?
        for slot in slots {
            guard let attempt = slot.nextAttempt else { return nil }
            next = min(attempt, next ?? attempt)
        }
        return next
    }

    private func hopeless(_ next: Instant) -> PushOutcome {
        .retryAfter(max(next - loop.now, .seconds(1)), reason: lastFailure)
    }

    /// Those that would wait in vain are told so.
    func slotWaits() {
        guard !queue.isEmpty, let next = unreachableUntil else { return }
        var left: [PendingPush] = []
        while let passage = queue.popFirst() {
            if passage.end <= next { leave(passage, hopeless(next), .unreachable) } else { left.append(passage) }
        }
        for passage in left.reversed() { queue.requeue(passage) }
    }

    func retire(_ connection: APNsConnection) {
        retired.append(connection)
        connection.retire()
    }

    func ended(_ connection: APNsConnection) {
        retired.removeAll { $0 === connection }
        loopState.touch()
        if isClosed, retired.isEmpty { end() }
    }

    /// Another credential is used from now on: what has been sent is still answered, what waits goes to `next`.
    func yieldConnection() {
        isClosed = true
        let open = slots.compactMap(\.connection)
        for slot in slots { slot.stop() }
        for connection in open { connection.dismiss() }
        while let passage = queue.popFirst() { loopState.dispatch(passage, again: true) }
        if retired.isEmpty { end() }
    }

    /// The slots hold their pool, and so it would live for ever.
    private func end() {
        slots = []
        loopState.left(self)
    }

    func close() {
        isClosed = true
        let open = slots.compactMap(\.connection) + retired
        for slot in slots { slot.stop() }
        refuseAll(.retryAfter(.seconds(1), reason: "closed"), .closed)
        for connection in open {
            connection.dismiss()
            connection.wire.close()
        }
        end()
    }

    // MARK: For the snapshot

    func add(to gauges: inout APNsGauges.Reading) {
        let open = slots.compactMap(\.connection)
        gauges.connections += open.count
        gauges.streamLimit += open.reduce(0) { $0 + $1.wire.peerMaxConcurrentStreams }
        gauges.inFlight += (open + retired).reduce(0) { $0 + $1.wire.activeStreams }
        gauges.queued += queue.count
        if let oldest = queue.first()?.since { gauges.oldest = min(oldest, gauges.oldest ?? oldest) }
    }
}
