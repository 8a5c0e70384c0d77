import Domain
import Synchronization
import Webhooks
import World

/// The webhook queues of this relay, one for each website with work.
///
/// Each queue (`Webhooks.WebhookQueue`) decides which webhooks leave now and what follows from each
/// outcome. Nothing waits here: a webhook that cannot leave at once goes back to the store, so
/// another relay can send it. A queue is removed when it holds nothing that the store does not
/// know.
///
/// Invariant: one lease for each website at a time, so that a relay never leases more than the
/// queue has room for. If the endpoint's URL or its last operator's change differs from the known
/// one, the queue is reset.
///
/// Tests: `RelayTests/WebhookDeliveryTests.swift` and `WebhookOutageTests.swift`; for the rules of
/// one queue `WebhooksTests/WebhookQueueTests.swift` and `WebhookQueueSimulationTests.swift`.
final class WebhookQueues: Sendable {
    typealias Queue = WebhookQueue<OutboxEntryID, ChallengeID>

    private struct EndpointState {
        var queue: Queue
        var revision: EndpointRevision?
        /// Whether a lease is running. Two at a time would lease more than there is room for.
        var isLeasing = false
        /// The number of webhooks that the running lease may bring.
        var granted = 0
        /// Whether a round asked for this endpoint during the lease.
        var needsAnotherRound = false
        /// Paused until then because of a fault on our side.
        var pausedUntil: Timestamp?
        /// Whether the endpoint works again, and its waiting webhooks are being made due.
        var isRecovering = false

        /// The webhooks in flight, or about to be, beyond those that each website may have.
        var extra: Int { max(queue.underWayCount + granted - WebhookWindow.least, 0) }

        func isPaused(at now: Timestamp) -> Bool {
            guard let pausedUntil else { return false }
            // If the clock went back, do not wait.
            return now < pausedUntil && pausedUntil - now <= WebhookQueues.pause
        }
    }

    /// The pause of an endpoint because of a fault on our side.
    static let pause = Duration.seconds(60)
    /// The most webhooks in flight beyond the first few of each website. Receivers that answered
    /// quickly and then hang together hold no more connections than that. A lease counts from its
    /// beginning, because a round begins those of all websites at once.
    static let mostExtra = 512

    private struct State {
        var endpoints: [WebsiteID: EndpointState] = [:]
        /// The sum of the websites' `extra`.
        var extra = 0
    }

    private let state = Mutex(State())

    /// The number of webhooks of this endpoint to lease now. If it is more than 0, the caller must
    /// call `addLeased` afterwards.
    func lease(_ website: DueEndpoint, at now: Timestamp) -> Int {
        change(website.id, at: now) { endpoint, extra in
            if let former = endpoint.revision, former != website.place {
                endpoint.queue.reset()
                endpoint.pausedUntil = nil
            }
            endpoint.revision = website.place
            endpoint.needsAnotherRound = endpoint.isLeasing
            guard !endpoint.isLeasing, !endpoint.isPaused(at: now) else { return 0 }
            // The effects can be ignored: disabled endpoints are not among those that are due.
            _ = endpoint.queue.update(website.health)
            let (free, extra) = (endpoint.queue.room(at: now), max(Self.mostExtra - extra, 0))
            let room = min(free, max(WebhookWindow.least - endpoint.queue.underWayCount, 0) + extra)
            endpoint.isLeasing = room > 0
            endpoint.granted = room
            return room
        }
    }

    /// Adds the leased webhooks to the queue and takes those that leave now.
    ///
    /// - Parameter isClosed: whether webhooks are stopped, so that none leaves.
    /// - Returns: the webhooks that leave, the effects for those that go back to the store, and
    ///   whether another round must follow.
    func addLeased(
        _ rows: [WebhookRow], of website: WebsiteID, at now: Timestamp, isClosed: Bool
    ) -> (leaving: [OutboxEntryID], effects: [Queue.Effect], isWanted: Bool) {
        change(website, at: now) { endpoint, _ in
            for row in rows {
                endpoint.queue.add(
                    Queue.Entry(row.id, thread: row.challenge?.id, ordinal: row.place, failures: row.failures))
            }
            var leaving: [OutboxEntryID] = []
            while !isClosed, let next = endpoint.queue.next(at: now) { leaving.append(next.id) }
            let isWanted = endpoint.needsAnotherRound
            (endpoint.isLeasing, endpoint.needsAnotherRound, endpoint.granted) = (false, false, 0)
            return (leaving, endpoint.queue.release(at: now), isWanted)
        }
    }

    /// Pauses an endpoint because an operator must first repair a fault on our side.
    func pause(_ website: WebsiteID, at now: Timestamp) {
        change(website, at: now) { endpoint, _ in endpoint.pausedUntil = now + Self.pause }
    }

    /// The end of an attempt.
    struct End {
        var effects: [Queue.Effect]
        /// Whether a success counts for the endpoint. During a recovery it does not: the attempt that
        /// began the recovery records it once, after the waiting webhooks are due.
        let isCounted: Bool
        /// Whether no further webhook could be sent before. Others may then be due.
        let wasFull: Bool
    }

    /// Ends an attempt.
    func end(
        _ id: OutboxEntryID, of website: WebsiteID, _ outcome: WebhookOutcome, at now: Timestamp, jitter: Double
    ) -> End {
        change(website, at: now) { endpoint, _ in
            let (wasRecovering, wasFull) = (endpoint.isRecovering, endpoint.queue.room(at: now) == 0)
            var effects = endpoint.queue.end(id, outcome, at: now, jitter: jitter)
            if effects.contains(.recovered) {
                if wasRecovering { effects.removeAll { $0 == .recovered } }
                endpoint.isRecovering = true
            }
            return End(effects: effects, isCounted: !wasRecovering, wasFull: wasFull)
        }
    }

    /// Ends a recovery. The waiting webhooks are due. If that failed, the next delivered webhook
    /// begins another recovery.
    func endRecovery(of website: WebsiteID, at now: Timestamp) {
        change(website, at: now) { endpoint, _ in endpoint.isRecovering = false }
    }

    /// - Parameter change: changes the endpoint. Its second argument is the number of webhooks in
    ///   flight beyond the first few of each website.
    private func change<Result>(
        _ website: WebsiteID, at now: Timestamp, _ change: (inout EndpointState, Int) -> Result
    ) -> Result {
        state.withLock { state in
            var endpoint = state.endpoints[website] ?? EndpointState(queue: Queue())
            let before = endpoint.extra
            let result = change(&endpoint, state.extra)
            state.extra += endpoint.extra - before
            let isNothing =
                !endpoint.isLeasing && !endpoint.isRecovering && !endpoint.isPaused(at: now)
                && endpoint.queue.isIdle(at: now)
            state.endpoints[website] = isNothing ? nil : endpoint
            return result
        }
    }
}
