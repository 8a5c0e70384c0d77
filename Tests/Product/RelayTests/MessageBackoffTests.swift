import Testing
import World

@testable import Relay

/// The back-off of messages.
struct MessageBackoffTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func next(
        _ attempts: Int, jitter: Double = 0.5, deadline: Int? = nil, expires: Int = 300
    ) -> Duration? {
        MessageBackoff.next(
            MessageBackoff.code, attempts: attempts, at: now, deadline: deadline.map { now + .seconds($0) },
            expiresAt: now + .seconds(expires), jitter: jitter
        ).map { $0 - now }
    }

    @Test func backOffGrowsWithJitter() {
        #expect((0..<7).map { next($0) } == [2, 5, 15, 30, 60, 60, 60].map { .seconds($0) })
        #expect(next(-1) == .seconds(2))
        #expect(next(3, jitter: 0) == .milliseconds(22_500))
        #expect(next(3, jitter: 1) == .milliseconds(37_500))
    }

    @Test func lastAttemptPrecedesTheNextFactor() {
        #expect(next(3, deadline: 90) == .seconds(30))
        #expect(next(4, deadline: 50) == .seconds(45))
        // The last attempt was just now, or the deadline has passed.
        #expect(next(4, deadline: 5) == .seconds(60))
        #expect(next(4, deadline: -20) == .seconds(60))
    }

    @Test func lastAttemptPrecedesTheCodesExpiry() {
        #expect(next(4, expires: 50) == .seconds(45))
        #expect(next(4, deadline: 49, expires: 48) == .seconds(43))
        #expect(next(4, expires: 6) == nil)
        #expect(next(0, expires: 4) == nil)
    }

    @Test func retryAfterIsRespected() {
        func next(_ wish: Duration, jitter: Double = 0.5, expires: Int = 300) -> Duration? {
            MessageBackoff.next(wish: wish, at: now, expiresAt: now + .seconds(expires), jitter: jitter).map {
                $0 - now
            }
        }
        #expect(next(.seconds(40)) == .seconds(45))
        #expect(next(.seconds(40), jitter: 0) == .seconds(40))
        #expect(next(.zero, jitter: 0) == .seconds(1))
        #expect(next(.seconds(40), expires: 43) == .seconds(41))
        #expect(next(.seconds(40), expires: 41) == nil)
        #expect(next(.seconds(100_000)) == nil)
    }
}
