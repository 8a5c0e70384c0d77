import Testing
import Webhooks
import World

private typealias Line = WebhookQueue<Int, String>
private typealias Effect = WebhookQueue<Int, String>.Effect

@Suite("The calls to one website") struct WebhookQueueTests {
    private let now = Timestamp(seconds: 1_800_000_000)
    private static let soon = Timestamp(seconds: 1_800_000_005)
    private let bad = WebhookOutcome.answered(status: 500)
    private let good = WebhookOutcome.answered(status: 200)

    private func line(_ entries: Line.Entry..., standing: WebhookHealth = WebhookHealth()) -> Line {
        var line = Line(standing)
        for entry in entries { line.add(entry) }
        return line
    }

    private func leaving(_ line: inout Line, at now: Timestamp? = nil) -> [Int] {
        var calls: [Int] = []
        while let entry = line.next(at: now ?? self.now) { calls.append(entry.call) }
        return calls
    }

    private func entries(_ calls: Range<Int>) -> [Line.Entry] { calls.map { Line.Entry($0) } }

    // MARK: How many

    @Test func webhooksInFlightAreLimited() {
        var line = Line()
        #expect(line.room(at: now) == 4)
        for entry in entries(0..<10) { line.add(entry) }
        #expect(line.room(at: now) == 0)
        #expect(leaving(&line) == [0, 1, 2, 3])
        #expect(leaving(&line) == [])
        #expect(line.end(2, good, at: now, chance: 0) == [.delivered(2)])
        #expect(leaving(&line) == [4])
        #expect(line.underWayCount == 4)
    }

    @Test func queuedWebhookIsNotAddedTwice() {
        var line = line(.init(1))
        #expect(line.add(.init(1)) == false)
        #expect(leaving(&line) == [1])
        #expect(line.add(.init(1)) == false)
        #expect(line.end(1, good, at: now, chance: 0) == [.delivered(1)])
        #expect(line.end(1, good, at: now, chance: 0) == [])
        #expect(line.isEmpty)
        #expect(line.add(.init(1)) == true)
    }

    /// What the former place asked for, and what comes from it still, is nothing of the new one's.
    @Test func newURLResetsTheQueue() {
        var line = Line()
        for entry in entries(0..<6) { line.add(entry) }
        #expect(leaving(&line) == [0, 1, 2, 3])
        let busy = WebhookOutcome.answered(status: 429, retryAfter: .seconds(600))
        _ = line.end(0, busy, at: now, chance: 0)
        #expect(line.room(at: now) == 0)
        let standing = line.health
        line.reset()
        #expect(line.end(1, busy, at: now, chance: 0) == [.retry(1, at: now, failures: 0)])
        #expect(line.end(2, .answered(status: 410), at: now, chance: 0) == [.retry(2, at: now, failures: 0)])
        #expect(line.end(3, good, at: now, chance: 0) == [.delivered(3)])
        #expect(line.health == standing)
        #expect(leaving(&line) == [4, 5])
        #expect(line.end(4, busy, at: now, chance: 0) == [.retry(4, at: now + .seconds(600), failures: 1)])
    }

    @Test func failingEndpointGetsOneWebhookAtATime() {
        var line = Line()
        for entry in entries(0..<10) { line.add(entry) }
        #expect(leaving(&line) == [0, 1, 2, 3])
        for call in 0..<2 { _ = line.end(call, bad, at: now, chance: 0) }
        #expect(leaving(&line) == [4, 5])
        for call in 2..<6 { _ = line.end(call, bad, at: now, chance: 0) }
        #expect(leaving(&line) == [6])
        #expect(line.room(at: now) == 0)
        _ = line.end(6, good, at: now, chance: 0)
        #expect(leaving(&line) == [7, 8, 9])
    }

    @Test(
        "One that has too much to do is asked one at a time at once",
        arguments: [.answered(status: 429), .answered(status: 503), .unanswered(.timeout)] as [WebhookOutcome])
    func overloadedEndpointGetsOneWebhookAtATime(outcome: WebhookOutcome) {
        var line = Line()
        for entry in entries(0..<6) { line.add(entry) }
        _ = line.next(at: now)
        #expect(line.end(0, outcome, at: now, chance: 0) == [.retry(0, at: Self.soon, failures: 1)])
        #expect(leaving(&line) == [1])
        _ = line.end(1, bad, at: now, chance: 0)
        #expect(leaving(&line) == [2])
        _ = line.end(2, good, at: now, chance: 0)
        #expect(leaving(&line) == [3, 4, 5])
    }

    @Test(
        "One that asks for rest has it, within an hour; in seconds",
        arguments: [(60, 60), (3600, 3600), (3601, 3600), (86_400, 3600), (0, 0), (-5, 0)] as [(Int64, Int64)])
    func retryAfterPausesTheEndpointUpToOneHour(wish: Int64, seconds: Int64) {
        var line = line(.init(0), .init(1))
        _ = line.next(at: now)
        _ = line.end(0, .answered(status: 429, retryAfter: .seconds(wish)), at: now, chance: 0)
        if seconds > 0 {
            #expect(line.restEnd(at: now) == now + .seconds(seconds))
            #expect(line.room(at: now) == 0)
            #expect(leaving(&line, at: now + .seconds(seconds) - .milliseconds(1)) == [])
            // Of a clock that jumps it is not waited for.
            #expect(line.restEnd(at: now - .seconds(86_400)) == nil)
        }
        #expect(line.restEnd(at: now + .seconds(seconds)) == nil)
        #expect(leaving(&line, at: now + .seconds(seconds)) == [1])
    }

    @Test func longerRetryAfterApplies() {
        var line = Line()
        for entry in entries(0..<5) { line.add(entry) }
        #expect(leaving(&line) == [0, 1, 2, 3])
        for (call, wish) in [(0, 600), (1, 60)] as [(Int, Int64)] {
            _ = line.end(call, .answered(status: 503, retryAfter: .seconds(wish)), at: now, chance: 0)
        }
        #expect(line.restEnd(at: now) == now + .seconds(600))
        // What was on its way before does not end it.
        #expect(line.end(2, good, at: now, chance: 0) == [.delivered(2)])
        #expect(leaving(&line) == [])
        // One that a clock which was set back has left far ahead is not the longer one.
        let before = now - .seconds(86_400)
        _ = line.end(3, .answered(status: 503, retryAfter: .seconds(60)), at: before, chance: 0)
        #expect(line.restEnd(at: before) == before + .seconds(60))
    }

    // MARK: In order

    @Test func webhooksOfOneChallengeAreSentInOrder() {
        var line = line(
            .init(3, thread: "a", ordinal: 2), .init(2, thread: "a", ordinal: 1), .init(1, thread: "a", ordinal: 0),
            .init(9, thread: "b", ordinal: 5))
        #expect(leaving(&line) == [1, 9])
        #expect(line.end(1, good, at: now, chance: 0) == [.delivered(1)])
        #expect(leaving(&line) == [2])
        #expect(line.end(2, good, at: now, chance: 0) == [.delivered(2)])
        #expect(leaving(&line) == [3])
    }

    @Test func equalOrdinalsAreSentInArrivalOrder() {
        var line = line(.init(1, thread: "a"), .init(2, thread: "a"))
        #expect(leaving(&line) == [1])
        _ = line.end(1, good, at: now, chance: 0)
        #expect(leaving(&line) == [2])
    }

    @Test func laterWebhooksWaitWithAFailedOne() {
        var line = line(
            .init(1, thread: "a", ordinal: 0), .init(2, thread: "a", ordinal: 1, failures: 3), .init(3, thread: "b"))
        #expect(leaving(&line) == [1, 3])
        #expect(
            line.end(1, bad, at: now, chance: 0) == [
                .retry(1, at: Self.soon, failures: 1), .retry(2, at: Self.soon, failures: 3),
            ])
        #expect(leaving(&line) == [])
        #expect(line.underWayCount == 1)
    }

    @Test func deadWebhookDoesNotBlockItsChallenge() {
        var line = line(.init(1, thread: "a", ordinal: 0, failures: 7), .init(2, thread: "a", ordinal: 1))
        #expect(leaving(&line) == [1])
        #expect(line.end(1, bad, at: now, chance: 0) == [.dead(1, failures: 8)])
        #expect(leaving(&line) == [2])
    }

    // MARK: What follows

    @Test(
        "Outcome by outcome, of a first try and of a last one",
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
            // No try, so none is lost.
            (
                .unsent, .retry(1, at: Timestamp(seconds: 1_800_000_001), failures: 0),
                .retry(1, at: Timestamp(seconds: 1_800_000_001), failures: 7)
            ),
        ] as [(WebhookOutcome, Effect, Effect)])
    private func outcomeHasItsEffectOnTheWebhook(outcome: WebhookOutcome, first: Effect, last: Effect) {
        for (failures, effect) in [(0, first), (7, last)] {
            var line = line(.init(1, failures: failures))
            _ = line.next(at: now)
            #expect(line.end(1, outcome, at: now, chance: 0) == [effect])
            #expect(line.isEmpty)
        }
    }

    @Test func status410DisablesTheEndpointAndKeepsItsWebhooks() {
        var line = line(.init(1), .init(2), .init(3, failures: 2))
        _ = line.next(at: now)
        _ = line.next(at: now)
        #expect(
            line.end(1, .answered(status: 410), at: now, chance: 0) == [
                .suspended(1, failures: 0), .suspended(3, failures: 2), .disabled(.unsubscribed),
            ])
        #expect(line.room(at: now) == 0)
        // What was under way comes to its end, and nobody is told twice.
        #expect(line.end(2, .answered(status: 410), at: now, chance: 0) == [.suspended(2, failures: 0)])
        line.add(.init(4))
        #expect(leaving(&line) == [])
    }

    @Test func daysOfFailuresDisableTheEndpointWithOneEvent() {
        let standing = WebhookHealth(.failing(since: now - .seconds(3 * 86_400), attempts: 9))
        var line = line(.init(1), .init(2, failures: 7), standing: standing)
        #expect(leaving(&line) == [1])
        #expect(
            line.end(1, bad, at: now, chance: 0) == [
                .suspended(1, failures: 1), .suspended(2, failures: 7), .disabled(.failures),
            ])
        #expect(line.health.state == .disabled(.failures, since: now))
    }

    @Test func lastAttemptIsFinalOnADisabledEndpoint() {
        let standing = WebhookHealth(.failing(since: now - .seconds(3 * 86_400), attempts: 9))
        var line = line(.init(1, failures: 7), standing: standing)
        #expect(leaving(&line) == [1])
        #expect(line.end(1, bad, at: now, chance: 0) == [.dead(1, failures: 8), .disabled(.failures)])
    }

    @Test func operatorDisablesAndEnablesTheEndpoint() {
        var line = line(.init(1), .init(2), .init(3), .init(4), .init(5, failures: 1))
        #expect(leaving(&line) == [1, 2, 3, 4])
        #expect(line.update(WebhookHealth(.disabled(.operator, since: now))) == [.suspended(5, failures: 1)])
        #expect(line.end(1, good, at: now, chance: 0) == [.delivered(1)])
        #expect(line.end(2, bad, at: now, chance: 0) == [.suspended(2, failures: 1)])
        #expect(line.end(3, .unsent, at: now, chance: 0) == [.suspended(3, failures: 0)])
        #expect(line.update(WebhookHealth()) == [])
        #expect(line.room(at: now) == 3)
    }

    @Test func enablingEndsTheRetryAfterPause() {
        var line = line(.init(1), .init(2))
        _ = line.next(at: now)
        _ = line.end(1, .answered(status: 429, retryAfter: .seconds(600)), at: now, chance: 0)
        _ = line.update(WebhookHealth(.disabled(.operator, since: now)))
        _ = line.update(WebhookHealth())
        #expect(line.room(at: now) == 4)
    }

    @Test func waitingWebhooksAreDueAfterRecovery() {
        let standing = WebhookHealth(.failing(since: now - .seconds(300), attempts: 3))
        var line = line(.init(1), .init(2), standing: standing)
        #expect(leaving(&line) == [1])
        #expect(line.end(1, good, at: now, chance: 0) == [.delivered(1), .recovered])
        #expect(leaving(&line) == [2])
        #expect(line.end(2, good, at: now, chance: 0) == [.delivered(2)])
    }

    @Test func unsentWebhooksAreReleasedAtShutdown() {
        var line = Line()
        for entry in entries(0..<6) { line.add(entry) }
        #expect(leaving(&line).count == 4)
        #expect(line.release(at: now) == [.retry(4, at: now, failures: 0), .retry(5, at: now, failures: 0)])
        #expect(line.underWayCount == 4)
    }
}
