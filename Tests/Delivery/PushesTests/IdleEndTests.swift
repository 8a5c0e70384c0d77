import DeliveryOutcomes
import HTTP2
import Testing
import World

@testable import Pushes

/// Connections that end while there is nothing to send.
@Suite struct IdleEndTests {
    /// Some services, or devices on the path, close idle connections.
    @Test func idleCloseIsNoFailure() throws {
        let stand = try PoolBench(connections: 2)
        stand.enter { stand.loopState.connectEagerly() }
        for _ in 0..<10 {
            stand.open()
            #expect(stand.wires().count { $0.state == .open } == 2)
            stand.pass(.seconds(30))
            stand.enter { for wire in stand.wires() { wire.close() } }
        }
        stand.open()
        let push = stand.send()
        let carrying = try #require(stand.wires().first { !$0.underway.isEmpty })
        try stand.answer(carrying)
        #expect(stand.outcomes(push) == [.accepted(by: nil)])
    }

    @Test func closeAfterOpeningIsAFailure() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        // The first two reconnect at once; from then on each reconnect is delayed.
        for _ in 0..<5 {
            stand.open()
            stand.enter { for wire in stand.wires() { wire.close() } }
        }
        let count = stand.wires().count
        #expect(count < 5)
        stand.pass(.seconds(120))
        #expect(stand.wires().count == count + 1, "it is opened again, later")
    }

    /// After many replacements, the next connection without waiting pushes would be opened late.
    @Test func pushOpensAConnectionDelayedByReplacements() throws {
        let stand = try PoolBench(connections: 2)
        for _ in 0..<100 {
            let push = stand.send()
            stand.open()
            let carrying = try #require(stand.wires().first { !$0.underway.isEmpty }, "\(stand.outcomes(push))")
            try stand.answer(carrying)
            #expect(stand.outcomes(push) == [.accepted(by: nil)])
            stand.enter { for wire in stand.wires() { wire.close() } }
        }
    }

    @Test func stableConnectionClearsTheFailuresOfItsAddress() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.settle()
        for _ in 0..<6 {
            let last = try stand.wire()
            stand.enter { last.refuse() }
            stand.pass(.seconds(120))
        }
        stand.open()
        stand.pass(.seconds(61))
        let steady = try stand.wire()
        #expect(steady.state == .open)
        stand.enter { steady.close() }
        let next = try stand.wire()
        #expect(next !== steady, "at once")
        stand.enter { next.refuse() }
        stand.pass(.seconds(2))
        #expect(try stand.wire() !== next, "a first failure costs a second and a half at most")
    }
}
