import Testing
import Webhooks
import World

private typealias Queue = WebhookQueue<Int, String>
private typealias Effect = WebhookQueue<Int, String>.Effect

@Suite("The webhook queue of one website") struct WebhookQueueTests {
    private let now = Timestamp(seconds: 1_800_000_000)
    private static let soon = Timestamp(seconds: 1_800_000_005)
    private let bad = WebhookOutcome.answered(status: 500)
    private let good = WebhookOutcome.answered(status: 200)

    private func queue(_ entries: Queue.Entry..., health: WebhookHealth = WebhookHealth()) -> Queue {
        var queue = Queue(health)
        for entry in entries { queue.add(entry) }
        return queue
    }

    private func leaving(_ queue: inout Queue, at now: Timestamp? = nil) -> [Int] {
        var webhooks: [Int] = []
        while let entry = queue.next(at: now ?? self.now) { webhooks.append(entry.id) }
        return webhooks
    }

    private func entries(_ webhooks: Range<Int>) -> [Queue.Entry] { webhooks.map { Queue.Entry($0) } }

    // MARK: Concurrency

    @Test func webhooksInFlightAreLimited() {
        var queue = Queue()
        #expect(queue.room(at: now) == 4)
        for entry in entries(0..<10) { queue.add(entry) }
        #expect(queue.room(at: now) == 0)
        #expect(leaving(&queue) == [0, 1, 2, 3])
        #expect(leaving(&queue) == [])
        // Too late for a larger window.
        #expect(queue.end(2, good, at: now + .seconds(1), jitter: 0) == [.delivered(2)])
        #expect(leaving(&queue) == [4])
        #expect(queue.underWayCount == 4)
    }

    @Test func queuedWebhookIsNotAddedTwice() {
        var queue = queue(.init(1))
        #expect(queue.add(.init(1)) == false)
        #expect(leaving(&queue) == [1])
        #expect(queue.add(.init(1)) == false)
        #expect(queue.end(1, good, at: now, jitter: 0) == [.delivered(1)])
        #expect(queue.end(1, good, at: now, jitter: 0) == [])
        #expect(queue.isEmpty)
        #expect(queue.add(.init(1)) == true)
    }

    /// A new URL does not inherit the requested pause of the old URL, nor its late outcomes.
    @Test func newURLResetsTheQueue() {
        var queue = Queue()
        for entry in entries(0..<6) { queue.add(entry) }
        #expect(leaving(&queue) == [0, 1, 2, 3])
        let busy = WebhookOutcome.answered(status: 429, retryAfter: .seconds(600))
        _ = queue.end(0, busy, at: now, jitter: 0)
        #expect(queue.room(at: now) == 0)
        let health = queue.health
        queue.reset()
        #expect(queue.end(1, busy, at: now, jitter: 0) == [.retry(1, at: now, failures: 0)])
        #expect(queue.end(2, .answered(status: 410), at: now, jitter: 0) == [.retry(2, at: now, failures: 0)])
        #expect(queue.end(3, good, at: now, jitter: 0) == [.delivered(3)])
        #expect(queue.health == health)
        #expect(leaving(&queue) == [4, 5])
        #expect(queue.end(4, busy, at: now, jitter: 0) == [.retry(4, at: now + .seconds(600), failures: 1)])
    }

    @Test func failingEndpointGetsOneWebhookAtATime() {
        var queue = Queue()
        for entry in entries(0..<10) { queue.add(entry) }
        #expect(leaving(&queue) == [0, 1, 2, 3])
        for webhook in 0..<2 { _ = queue.end(webhook, bad, at: now, jitter: 0) }
        #expect(leaving(&queue) == [4, 5])
        for webhook in 2..<6 { _ = queue.end(webhook, bad, at: now, jitter: 0) }
        #expect(leaving(&queue) == [6])
        #expect(queue.room(at: now) == 0)
        _ = queue.end(6, good, at: now, jitter: 0)
        #expect(leaving(&queue) == [7, 8, 9])
    }

    @Test(
        "An overloaded endpoint gets one webhook at a time from then on",
        arguments: [.answered(status: 429), .answered(status: 503), .unanswered(.timeout)] as [WebhookOutcome])
    func overloadedEndpointGetsOneWebhookAtATime(outcome: WebhookOutcome) {
        var queue = Queue()
        for entry in entries(0..<6) { queue.add(entry) }
        _ = queue.next(at: now)
        #expect(queue.end(0, outcome, at: now, jitter: 0) == [.retry(0, at: Self.soon, failures: 1)])
        #expect(leaving(&queue) == [1])
        _ = queue.end(1, bad, at: now, jitter: 0)
        #expect(leaving(&queue) == [2])
        _ = queue.end(2, good, at: now, jitter: 0)
        #expect(leaving(&queue) == [3, 4, 5])
    }

    @Test(
        "An endpoint that requests a pause gets it, an hour at most; in seconds",
        arguments: [(60, 60), (3600, 3600), (3601, 3600), (86_400, 3600), (0, 0), (-5, 0)] as [(Int64, Int64)])
    func retryAfterPausesTheEndpointUpToOneHour(wish: Int64, seconds: Int64) {
        var queue = queue(.init(0), .init(1))
        _ = queue.next(at: now)
        _ = queue.end(0, .answered(status: 429, retryAfter: .seconds(wish)), at: now, jitter: 0)
        if seconds > 0 {
            #expect(queue.pauseEnd(at: now) == now + .seconds(seconds))
            #expect(queue.room(at: now) == 0)
            #expect(leaving(&queue, at: now + .seconds(seconds) - .milliseconds(1)) == [])
            // If the clock jumps, the queue does not wait for it.
            #expect(queue.pauseEnd(at: now - .seconds(86_400)) == nil)
        }
        #expect(queue.pauseEnd(at: now + .seconds(seconds)) == nil)
        #expect(leaving(&queue, at: now + .seconds(seconds)) == [1])
    }

    @Test func longerRetryAfterApplies() {
        var queue = Queue()
        for entry in entries(0..<5) { queue.add(entry) }
        #expect(leaving(&queue) == [0, 1, 2, 3])
        for (webhook, wish) in [(0, 600), (1, 60)] as [(Int, Int64)] {
            _ = queue.end(webhook, .answered(status: 503, retryAfter: .seconds(wish)), at: now, jitter: 0)
        }
        #expect(queue.pauseEnd(at: now) == now + .seconds(600))
        // The success of a webhook that was already in flight does not end the pause.
        #expect(queue.end(2, good, at: now, jitter: 0) == [.delivered(2)])
        #expect(leaving(&queue) == [])
        // The end of a pause that lies far ahead only because the clock was set back does not count as later.
        let before = now - .seconds(86_400)
        _ = queue.end(3, .answered(status: 503, retryAfter: .seconds(60)), at: before, jitter: 0)
        #expect(queue.pauseEnd(at: before) == before + .seconds(60))
    }

    // MARK: Order

    @Test func webhooksOfOneChallengeAreSentInOrder() {
        var queue = queue(
            .init(3, thread: "a", ordinal: 2), .init(2, thread: "a", ordinal: 1), .init(1, thread: "a", ordinal: 0),
            .init(9, thread: "b", ordinal: 5))
        #expect(leaving(&queue) == [1, 9])
        #expect(queue.end(1, good, at: now, jitter: 0) == [.delivered(1)])
        #expect(leaving(&queue) == [2])
        #expect(queue.end(2, good, at: now, jitter: 0) == [.delivered(2)])
        #expect(leaving(&queue) == [3])
    }

    @Test func equalOrdinalsAreSentInArrivalOrder() {
        var queue = queue(.init(1, thread: "a"), .init(2, thread: "a"))
        #expect(leaving(&queue) == [1])
        _ = queue.end(1, good, at: now, jitter: 0)
        #expect(leaving(&queue) == [2])
    }

    @Test func laterWebhooksWaitWithAFailedOne() {
        var queue = queue(
            .init(1, thread: "a", ordinal: 0), .init(2, thread: "a", ordinal: 1, failures: 3), .init(3, thread: "b"))
        #expect(leaving(&queue) == [1, 3])
        #expect(
            queue.end(1, bad, at: now, jitter: 0) == [
                .retry(1, at: Self.soon, failures: 1), .retry(2, at: Self.soon, failures: 3),
            ])
        #expect(leaving(&queue) == [])
        #expect(queue.underWayCount == 1)
    }

    @Test func deadWebhookDoesNotBlockItsChallenge() {
        var queue = queue(.init(1, thread: "a", ordinal: 0, failures: 7), .init(2, thread: "a", ordinal: 1))
        #expect(leaving(&queue) == [1])
        #expect(queue.end(1, bad, at: now, jitter: 0) == [.dead(1, failures: 8)])
        #expect(leaving(&queue) == [2])
    }

    // MARK: Effects of outcomes

    @Test(
        "Each outcome, at the first and at the last attempt",
        arguments: [
            (.answered(status: 204), .delivered(1), .delivered(1)),
            (.answered(status: 302), .retry(1, at: WebhookQueueTests.soon, failures: 1), .dead(1, failures: 8)),
            (.answered(status: 404), .retry(1, at: WebhookQueueTests.soon, failures: 1), .dead(1, failures: 8)),
            (.answered(status: 500), .retry(1, at: WebhookQueueTests.soon, failures: 1), .dead(1, failures: 8)),
            (.unanswered(.timeout), .retry(1, at: WebhookQueueTests.soon, failures: 1), .dead(1, failures: 8)),
            (.unanswered(.refusedAddress), .retry(1, at: WebhookQueueTests.soon, failures: 1), .dead(1, failures: 8)),
            (.unanswered(.untrusted), .retry(1, at: WebhookQueueTests.soon, failures: 1), .dead(1, failures: 8)),
            (
                .answered(status: 503, retryAfter: .seconds(60)),
                .retry(1, at: Timestamp(seconds: 1_800_000_060), failures: 1), .dead(1, failures: 8)
            ),
            // Not an attempt, so it uses up none.
            (
                .unsent, .retry(1, at: Timestamp(seconds: 1_800_000_001), failures: 0),
                .retry(1, at: Timestamp(seconds: 1_800_000_001), failures: 7)
            ),
        ] as [(WebhookOutcome, Effect, Effect)])
    private func outcomeHasItsEffectOnTheWebhook(outcome: WebhookOutcome, first: Effect, last: Effect) {
        for (failures, effect) in [(0, first), (7, last)] {
            var queue = queue(.init(1, failures: failures))
            _ = queue.next(at: now)
            #expect(queue.end(1, outcome, at: now, jitter: 0) == [effect])
            #expect(queue.isEmpty)
        }
    }

    @Test func status410DisablesTheEndpointAndKeepsItsWebhooks() {
        var queue = queue(.init(1), .init(2), .init(3, failures: 2))
        _ = queue.next(at: now)
        _ = queue.next(at: now)
        #expect(
            queue.end(1, .answered(status: 410), at: now, jitter: 0) == [
                .suspended(1, failures: 0), .suspended(3, failures: 2), .disabled(.unsubscribed),
            ])
        #expect(queue.room(at: now) == 0)
        // Webhooks in flight continue to their outcomes, and the state is reported once.
        #expect(queue.end(2, .answered(status: 410), at: now, jitter: 0) == [.suspended(2, failures: 0)])
        queue.add(.init(4))
        #expect(leaving(&queue) == [])
    }

    @Test func daysOfFailuresDisableTheEndpointWithOneEvent() {
        let health = WebhookHealth(.failing(since: now - .seconds(3 * 86_400), attempts: 9))
        var queue = queue(.init(1), .init(2, failures: 7), health: health)
        #expect(leaving(&queue) == [1])
        #expect(
            queue.end(1, bad, at: now, jitter: 0) == [
                .suspended(1, failures: 1), .suspended(2, failures: 7), .disabled(.failures),
            ])
        #expect(queue.health.state == .disabled(.failures, since: now))
    }

    @Test func lastAttemptIsFinalOnADisabledEndpoint() {
        let health = WebhookHealth(.failing(since: now - .seconds(3 * 86_400), attempts: 9))
        var queue = queue(.init(1, failures: 7), health: health)
        #expect(leaving(&queue) == [1])
        #expect(queue.end(1, bad, at: now, jitter: 0) == [.dead(1, failures: 8), .disabled(.failures)])
    }

    @Test func operatorDisablesAndEnablesTheEndpoint() {
        var queue = queue(.init(1), .init(2), .init(3), .init(4), .init(5, failures: 1))
        #expect(leaving(&queue) == [1, 2, 3, 4])
        #expect(queue.update(WebhookHealth(.disabled(.operator, since: now))) == [.suspended(5, failures: 1)])
        #expect(queue.end(1, good, at: now, jitter: 0) == [.delivered(1)])
        #expect(queue.end(2, bad, at: now, jitter: 0) == [.suspended(2, failures: 1)])
        #expect(queue.end(3, .unsent, at: now, jitter: 0) == [.suspended(3, failures: 0)])
        #expect(queue.update(WebhookHealth()) == [])
        #expect(queue.room(at: now) == 3)
    }

    @Test func enablingEndsTheRetryAfterPause() {
        var queue = queue(.init(1), .init(2))
        _ = queue.next(at: now)
        _ = queue.end(1, .answered(status: 429, retryAfter: .seconds(600)), at: now, jitter: 0)
        _ = queue.update(WebhookHealth(.disabled(.operator, since: now)))
        _ = queue.update(WebhookHealth())
        #expect(queue.room(at: now) == 4)
    }

    @Test func waitingWebhooksAreDueAfterRecovery() {
        let health = WebhookHealth(.failing(since: now - .seconds(300), attempts: 3))
        var queue = queue(.init(1), .init(2), health: health)
        #expect(leaving(&queue) == [1])
        #expect(queue.end(1, good, at: now, jitter: 0) == [.delivered(1), .recovered])
        #expect(leaving(&queue) == [2])
        #expect(queue.end(2, good, at: now, jitter: 0) == [.delivered(2)])
    }

    @Test func unsentWebhooksAreReleasedAtShutdown() {
        var queue = Queue()
        for entry in entries(0..<6) { queue.add(entry) }
        #expect(leaving(&queue).count == 4)
        #expect(queue.release(at: now) == [.retry(4, at: now, failures: 0), .retry(5, at: now, failures: 0)])
        #expect(queue.underWayCount == 4)
    }
}
