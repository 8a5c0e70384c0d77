import Testing
import Webhooks
import World

private typealias Queue = WebhookQueue<Int, String>

@Suite("The window of a website's webhooks") struct WebhookWindowTests {
    private let good = WebhookOutcome.answered(status: 200)
    private let start = Timestamp(seconds: 1_800_000_000)

    /// A website with any number of webhooks, whose answers take as long as the test says.
    private struct Website {
        var queue = Queue()
        var now: Timestamp
        private var last = 0

        init(at now: Timestamp) { self.now = now }

        /// Sends as many webhooks as may be in flight, but no more than `waiting`. All are answered
        /// after `duration`. Returns how many were in flight.
        mutating func round(
            after duration: Duration, waiting: Int = 1000, _ outcome: WebhookOutcome = .answered(status: 200)
        ) -> Int {
            for _ in 0..<min(queue.room(at: now), waiting) {
                last += 1
                queue.add(.init(last))
            }
            var sent: [Int] = []
            while let entry = queue.next(at: now) { sent.append(entry.id) }
            now = now + duration
            for id in sent { _ = queue.end(id, outcome, at: now, jitter: 0) }
            return sent.count
        }
    }

    @Test func quickAnswersEnlargeAFullWindow() {
        var website = Website(at: start)
        let sizes = (0..<7).map { _ in website.round(after: .milliseconds(100)) }
        #expect(sizes == [4, 8, 16, 32, 64, 100, 100])
    }

    @Test func windowThatIsNotFullStays() {
        var website = Website(at: start)
        for _ in 0..<100 { #expect(website.round(after: .milliseconds(1), waiting: 3) == 3) }
        #expect(website.round(after: .milliseconds(1)) == 4)
    }

    @Test func lateAnswersShrinkTheWindow() {
        var website = Website(at: start)
        for _ in 0..<4 { _ = website.round(after: .milliseconds(10)) }
        #expect(website.round(after: .milliseconds(101)) == 64)
        #expect(website.round(after: .milliseconds(101)) == 4)
        #expect(website.round(after: .seconds(14)) == 4)
        #expect(website.round(after: .milliseconds(10)) == 4)
        #expect(website.round(after: .milliseconds(10)) == 8)
    }

    /// A receiver takes 5 ms for each webhook, one at a time. It answers 20 within the time that counts
    /// as quick. The window grows on until the first late answer, one window later: up to 41. So no
    /// answer takes longer than about twice that time.
    @Test func windowFollowsTheReceiversRate() {
        var (queue, now) = (Queue(), start)
        var (last, accepted, sizes): (Int, [(id: Int, answeredAt: Timestamp)], [Int]) = (0, [], [])
        for _ in 0..<2000 {
            for _ in 0..<queue.room(at: now) {
                last += 1
                queue.add(.init(last))
            }
            while let entry = queue.next(at: now) {
                accepted.append((entry.id, max(accepted.last?.answeredAt ?? now, now) + .milliseconds(5)))
            }
            sizes.append(queue.underWayCount)
            let next = accepted.removeFirst()
            now = next.answeredAt
            _ = queue.end(next.id, good, at: now, jitter: 0)
        }
        #expect(sizes.suffix(1000).allSatisfy { (4...41).contains($0) }, "\(sizes.suffix(1000))")
    }

    @Test(
        arguments: [
            .answered(status: 500), .answered(status: 404), .unanswered(.unreachable), .unsent,
        ] as [WebhookOutcome])
    func anyOtherOutcomeResetsTheWindow(outcome: WebhookOutcome) {
        var website = Website(at: start)
        for _ in 0..<6 { _ = website.round(after: .milliseconds(10)) }
        #expect(website.round(after: .milliseconds(10), waiting: 1, outcome) == 1)
        #expect(website.round(after: .milliseconds(10)) == 4)
    }

    @Test func windowOfAFormerURLIsForgotten() {
        var website = Website(at: start)
        for _ in 0..<6 { _ = website.round(after: .milliseconds(10)) }
        website.queue.reset()
        #expect(website.round(after: .milliseconds(10)) == 4)
    }

    @Test func windowThatWasNotFullForSomeTimeIsForgotten() {
        var website = Website(at: start)
        for _ in 0..<6 { _ = website.round(after: .milliseconds(10)) }
        let fullAt = website.now + .milliseconds(-10)
        #expect(!website.queue.isIdle(at: website.now))
        #expect(website.queue.room(at: fullAt + .milliseconds(9999)) == 100)
        #expect(website.queue.isIdle(at: fullAt + .seconds(10)))
        #expect(website.queue.room(at: fullAt + .seconds(10)) == 4)
        // The clock went back.
        #expect(website.queue.room(at: start) == 4)
        website.now = fullAt + .seconds(10)
        #expect(website.round(after: .milliseconds(10)) == 4)
        #expect(website.round(after: .milliseconds(10)) == 8)
    }
}
