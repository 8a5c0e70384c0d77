import Testing
import World

@testable import Relay

@Suite struct SenderThrottleTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func isAdmitted(_ senders: SenderThrottle, _ address: String, _ now: Instant) -> Bool {
        do {
            _ = try senders.admit(address, at: now)
            return true
        } catch {
            return false
        }
    }

    @Test func throttleDelayGrowsToItsMaximum() throws {
        let senders = SenderThrottle()
        for _ in 0..<5 {
            #expect(isAdmitted(senders, "a", start))
            senders.wrong("a", admitted: nil, at: start)
        }
        var now = start
        var pause = Duration.zero
        for number in 1...800 {
            pause = min(.seconds(5 * number), .seconds(60))
            #expect(!isAdmitted(senders, "a", now))
            #expect(!isAdmitted(senders, "a", now + (pause - .milliseconds(1))))
            #expect(isAdmitted(senders, "b", now))
            now = now + pause
            senders.wrong("a", admitted: try senders.admit("a", at: now), at: now)
        }
        #expect(pause == .seconds(60))
        now = now + pause + .seconds(3600)
        for _ in 0..<5 {
            senders.wrong("a", admitted: try senders.admit("a", at: now), at: now)
        }
        #expect(!isAdmitted(senders, "a", now))
    }

    @Test func throttledSenderHasOneRequestAtATime() throws {
        let senders = SenderThrottle()
        for _ in 0..<5 { senders.wrong("a", admitted: nil, at: start) }
        let later = start + .seconds(5)
        let admitted = try senders.admit("a", at: later)
        #expect(admitted != nil)
        #expect(!isAdmitted(senders, "a", later))
        // The code was right, so the next one is admitted.
        senders.right("a", admitted: admitted, at: later)
        #expect(isAdmitted(senders, "a", later))
        // A right code ends only its own pause.
        senders.wrong("a", admitted: admitted, at: later)
        senders.right("a", admitted: admitted, at: later)
        #expect(!isAdmitted(senders, "a", later))
    }

    @Test func burstCountsOnlyItsFirstRequests() throws {
        let senders = SenderThrottle()
        // All of them were admitted before the first one was found to be wrong.
        let admitted = try (0..<1000).map { _ in try senders.admit("a", at: start) }
        for until in admitted { senders.wrong("a", admitted: until, at: start) }
        #expect(!isAdmitted(senders, "a", start + .milliseconds(4_999)))
        let one = try senders.admit("a", at: start + .seconds(5))
        // The last code of the burst arrives while that one is checked.
        senders.wrong("a", admitted: nil, at: start + .seconds(5))
        senders.right("a", admitted: one, at: start + .seconds(5))
        #expect(isAdmitted(senders, "a", start + .seconds(5)))
    }

    @Test func throttleMemoryIsBounded() {
        let senders = SenderThrottle(most: 100)
        for _ in 0..<6 { senders.wrong("old", admitted: nil, at: start) }
        for number in 0..<10_000 {
            senders.wrong("sender-\(number)", admitted: nil, at: start)
            #expect(senders.count <= 100)
            // A sender that continues is remembered.
            if number % 40 == 0 { senders.wrong("old", admitted: nil, at: start) }
        }
        #expect(!isAdmitted(senders, "old", start))
        #expect(isAdmitted(senders, "sender-9999", start))
    }

    @Test(
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("", ""), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"),
            ("2001:db8:1:2:ffff::1", "2001:db8:1:2"), ("2001:db8::1", "2001:db8:0:0"), ("::1", "0:0:0:0"),
            ("fe80::", "fe80:0:0:0"), ("1::2:3:4:5:6:7", "1:0:2:3"), ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ]) func ipv6SenderIsItsNetwork(address: String, network: String)
    {
        #expect(SenderThrottle.network(address) == network)
    }
}
