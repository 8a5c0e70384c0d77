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
    let office: APNsSharedState
    private let desk: APNsLoop
    private var slots: [APNsConnectionSlot] = []
    /// They take nothing new, and still answer.
    private var retired: [APNsConnection] = []
    private var queue = PendingPushQueue()
    private var cached: (form: RequestForm, bearer: String?)
    private(set) var isClosed = false
    /// Why there was no connection, the last time.
    var lastFailure = "not connected"

    init(_ endpoint: APNsEndpoint, _ identity: APNsIdentity, desk: APNsLoop, dial: @escaping APNsConnector) {
        self.endpoint = endpoint
        self.identity = identity
        self.desk = desk
        loop = desk.loop
        office = desk.office
        cached = (APNsRequest.form(topic: office.topic, authority: endpoint.authority, authorization: nil), nil)
        slots = (0..<max(1, office.options.connections)).map { _ in APNsConnectionSlot(self, dial: dial) }
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
                APNsRequest.form(topic: office.topic, authority: endpoint.authority, authorization: bearer), bearer
            )
        }
        return cached
    }

    // MARK: Pushes

    func take(_ passage: PendingPush, again: Bool) {
        passage.pool = self
        // A trial goes on until it has its answer.
        if passage.triedFor !== identity {
            switch identity.entry(to: endpoint, at: office.time.instant) {
            case .free: break
            case .trial: passage.triedFor = identity
            case .refused(let reason): return leave(passage, .credentialFault(reason), .credential)
            }
        }
        if queue.isEmpty, let connection = choose(), connection.begin(passage) { return desk.touch() }
        guard again || queue.count < office.options.capacity else {
            return leave(passage, .retryAfter(.seconds(1), reason: "\(queue.count) pushes wait already"), .full)
        }
        if let next = unreachableUntil, next >= passage.end { return leave(passage, hopeless(next), .unreachable) }
        if again { queue.putBack(passage) } else { queue.append(passage) }
        desk.touch()
        if isInNeed { _ = slots.contains { $0.hasten() } }
    }

    /// Sends what waits, as far as there are streams.
    func pump() {
        desk.touch()
        while !queue.isEmpty, let connection = choose(), let passage = queue.popFirst() {
            // Its timer is late, as the whole turn is.
            guard passage.end > loop.now else {
                late(passage)
                continue
            }
            if !connection.begin(passage) { queue.putBack(passage) }
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
    func overdue(_ passage: PendingPush) {
        passage.timer = nil
        desk.touch()
        if let connection = passage.connection {
            guard connection.abandon(passage) else { return late(passage) }
            return unanswered(passage, .timeout, "no answer in time")
        }
        queue.settledOne()
        late(passage)
    }

    /// It has waited for as long as it may.
    private func late(_ passage: PendingPush) {
        let reason = slots.allSatisfy { $0.connection == nil } ? lastFailure : "no stream in time"
        leave(passage, .retryAfter(.seconds(1), reason: reason), passage.expiresThen ? .expired : .late)
    }

    // MARK: What becomes of them

    func answered(_ passage: PendingPush, _ answer: APNsAnswer, by connection: APNsConnection) {
        let (push, meaning) = (passage.push, answer.meaning)
        let duration = loop.now - passage.sentAt
        office.log.debug(
            "apns.answer",
            [.push: push.id, .milliseconds: duration.wholeMilliseconds, .status: answer.status])
        office.observer?.answered(status: answer.status, reason: answer.label, after: duration)
        let verdict = answer.verdict(situation(passage, meaning))
        identity.learn(answer, verdict, from: endpoint, bearer: passage.bearer, at: office.time.instant)
        office.learn(meaning, push.environment)
        if meaning.provesCredential { connection.proved() }
        switch verdict.connection {
        case .keep: connection.served()
        case .replace:
            // It knows what it says: only one that is in trouble is to be left alone for a while.
            if meaning == .expiredCredential || meaning == .unrelatedKey { connection.served() }
            connection.retire()
        }
        if meaning != .accepted { note(answer, verdict, push) }
        switch verdict.push {
        case .settle(let outcome):
            if case .tokenDead = outcome { office.observer?.tokenRetired(reason: answer.label) }
            passage.settle(outcome, on: loop)
        case .repeatElsewhere:
            passage.repeatedFor.insert(meaning)
            desk.dispatch(passage, again: true)
        }
        if verdict.credential == .distrust { refuseAll(.credentialFault(answer.text), .credential) }
    }

    private func situation(_ passage: PendingPush, _ meaning: APNsAnswer.Meaning) -> APNsRequestState {
        var situation = APNsRequestState(sentAt: Timestamp(milliseconds: 0), repeatedFor: passage.repeatedFor)
        switch meaning {
        case .badToken, .foreignToken, .goneToken:
            situation.sentAt = office.time.now() - (loop.time.instant() - passage.sentAt)
            situation.doubtsEnvironment = office.doubts(passage.push.environment)
        case .expiredCredential:
            situation.mayRenew = passage.bearer.flatMap { identity.token?.mayFollow($0) } ?? false
        default: break
        }
        return situation
    }

    private func note(_ answer: APNsAnswer, _ verdict: APNsVerdict, _ push: APNsNotification) {
        let fields: LogFields = [
            .push: push.id, .status: answer.status, .reason: answer.reason, .environment: push.environment.rawValue,
        ]
        if verdict.alarm {
            office.log.error("apns.refused", fields)
        } else {
            office.log.info("apns.refused", fields)
        }
    }

    /// The service has certainly not worked on it.
    func refused(_ passage: PendingPush, _ reason: String) {
        passage.refusals += 1
        guard passage.refusals <= PendingPush.refusalLimit else {
            return leave(passage, .retryAfter(.seconds(1), reason: reason), .refused)
        }
        desk.dispatch(passage, again: true)
    }

    func unanswered(_ passage: PendingPush, _ why: APNsUnansweredReason, _ reason: String) {
        office.observer?.unanswered(why, after: loop.now - passage.sentAt)
        passage.settle(.ambiguous(reason), on: loop)
    }

    private func leave(_ passage: PendingPush, _ outcome: PushOutcome, _ why: APNsUnsentReason) {
        desk.touch()
        office.observer?.unsent(why)
        passage.settle(outcome, on: loop)
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
        for passage in left.reversed() { queue.putBack(passage) }
    }

    func retire(_ connection: APNsConnection) {
        retired.append(connection)
        connection.retire()
    }

    func ended(_ connection: APNsConnection) {
        retired.removeAll { $0 === connection }
        desk.touch()
        if isClosed, retired.isEmpty { end() }
    }

    /// Another credential is used from now on: what has been sent is still answered, what waits goes to `next`.
    func giveWay() {
        isClosed = true
        let open = slots.compactMap(\.connection)
        for slot in slots { slot.stop() }
        for connection in open { connection.dismiss() }
        while let passage = queue.popFirst() { desk.dispatch(passage, again: true) }
        if retired.isEmpty { end() }
    }

    /// The slots hold their pool, and so it would live for ever.
    private func end() {
        slots = []
        desk.left(self)
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
