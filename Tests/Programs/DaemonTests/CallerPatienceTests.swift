import Glibc
import TestSupport
import Testing

@testable import Daemon

/// The waits for a caller that does not read the answer.
@Suite struct CallerPatienceTests {
    /// A caller that reads a little every nine seconds is disconnected after a minute.
    @Test func waitsOfOneCallerAreAMinuteInAll() {
        var patience = CallerPatience()
        for _ in 1...5 {
            #expect(patience.next == .seconds(10))
            patience.count(.seconds(9))
        }
        #expect(patience.next == .seconds(10))
        patience.count(.seconds(9))
        #expect(patience.next == .seconds(6))
        patience.count(.seconds(6))
        #expect(patience.next == nil)
    }

    /// The clock may not show a very short wait.
    @Test func everyWaitCounts() {
        var patience = CallerPatience(once: .seconds(1), inAll: .milliseconds(3))
        for _ in 1...3 { patience.count(.zero) }
        #expect(patience.next == nil)
    }

    @Test func callerThatDoesNotReadIsGone() throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let reply = ControlReply(ends[0], patience: CallerPatience(once: .milliseconds(1), inAll: .milliseconds(2)))
        reply.say("read")
        #expect(!reply.isGone)
        reply.say(String(repeating: "x", count: 16 << 20))
        #expect(reply.isGone)
    }
}
