import Testing
import Webhooks
import World

@Suite("The retry schedule of a webhook") struct RetryScheduleTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    @Test(
        "The pause after a number of failures, in seconds; nil: no further attempt",
        arguments: [
            (0, 0), (1, 5), (2, 300), (3, 1800), (4, 7200), (5, 18_000), (6, 36_000), (7, 36_000), (8, nil), (9, nil),
            (.max, nil), (-1, 0),
        ] as [(Int, Int64?)])
    func pauseFollowsTheScheduleByFailureCount(failures: Int, seconds: Int64?) {
        let due = RetrySchedule.standard.next(failures: failures, at: now, jitter: 0)
        #expect(due == seconds.map { now + .seconds($0) })
    }

    @Test(
        "The pause with Retry-After, in seconds",
        arguments: [
            // Retry-After never shortens a pause.
            (1, 0, 5), (1, 4, 5), (3, 60, 1800), (1, -7, 5),
            (1, 6, 6), (1, 120, 120), (3, 1801, 1801), (7, 36_000, 36_000),
            // The longest pause is its upper limit.
            (1, 36_001, 36_000), (1, 4_000_000_000, 36_000),
        ] as [(Int, Int64, Int64)])
    func retryAfterLengthensThePause(failures: Int, wish: Int64, seconds: Int64) {
        let due = RetrySchedule.standard.next(failures: failures, retryAfter: .seconds(wish), at: now, jitter: 0)
        #expect(due == now + .seconds(seconds))
    }

    @Test func retryAfterAddsNoAttempt() {
        #expect(RetrySchedule.standard.next(failures: 8, retryAfter: .seconds(1), at: now, jitter: 0) == nil)
    }

    @Test(
        "Jitter lengthens a pause, by a quarter at most",
        arguments: [(0, 7_200_000), (0.5, 8_100_000), (1, 9_000_000), (-1, 7_200_000), (7, 9_000_000)]
            as [(Double, Int64)])
    func jitterAddsUpToAQuarter(jitter: Double, milliseconds: Int64) {
        #expect(RetrySchedule.standard.next(failures: 4, at: now, jitter: jitter) == now + .milliseconds(milliseconds))
        let wish = RetrySchedule.standard.next(failures: 1, retryAfter: .seconds(7200), at: now, jitter: jitter)
        #expect(wish == now + .milliseconds(milliseconds))
    }

    /// A website that is down for a day gets all webhooks of that day without help, whatever the jitter.
    @Test(arguments: [0, 0.999]) func lastAttemptIsMoreThanADayAfterTheFirst(jitter: Double) {
        var due = now
        var tries = 1
        while let next = RetrySchedule.standard.next(failures: tries, at: due, jitter: jitter) {
            due = next
            tries += 1
        }
        #expect(tries == 8)
        #expect(due - now >= .seconds(27 * 3600))
        #expect(due - now < .seconds(36 * 3600))
    }
}
