import DeliveryOutcomes
import HTTP
import HTTP2
import Testing
import World

@testable import Pushes

/// Connections that are open but do not work.
@Suite struct UnresponsiveConnectionTests {
    @Test func connectionThatAnswersOnlyPingsIsReplaced() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        let first = stand.send()
        try stand.answer(wire)
        #expect(stand.outcomes(first) == [.accepted(by: nil)])
        stand.pass(.seconds(1))
        let second = stand.send()
        for _ in 0..<10 {
            stand.pass(.seconds(1))
            stand.enter { wire.answerPings() }
        }
        #expect(stand.outcomes(second) == [.ambiguous("no answer in time")])
        #expect(wire.state == .closed, "it carried nothing else")
        stand.open()
        #expect(stand.wires().count == 2)
        let third = stand.send()
        try stand.answer(stand.wire())
        #expect(stand.outcomes(third) == [.accepted(by: nil)])
    }

    @Test func connectionThatAnswersOtherPushesIsKept() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        let first = stand.send()
        stand.pass(.seconds(1))
        let second = stand.send()
        let stream = try #require(wire.underway.last)
        stand.enter { wire.answer(stream, .init(status: 200)) }
        stand.pass(.seconds(8))
        #expect(stand.outcomes(first) == [.ambiguous("no answer in time")])
        #expect(stand.outcomes(second) == [.accepted(by: nil)])
        #expect(wire.state == .open)
    }

    @Test func connectionWithLittleTimeToAnswerIsKept() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        stand.pass(.seconds(1))
        let push = stand.send(lives: .milliseconds(50))
        stand.pass(.milliseconds(100))
        #expect(stand.outcomes(push) == [.ambiguous("no answer in time")])
        #expect(wire.state == .open)
    }

    @Test func connectionThatAnswersPushesMayBeLateWithAPing() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        let first = stand.send()
        let second = stand.send()
        stand.pass(.seconds(3))
        #expect(wire.isDoubted)
        try stand.answer(wire)
        #expect(stand.outcomes(first) == [.accepted(by: nil)])
        stand.enter { wire.failPings() }
        #expect(wire.state == .open)
        try stand.answer(wire)
        #expect(stand.outcomes(second) == [.accepted(by: nil)])
        // After another PING the connection does not answer at all.
        stand.enter { wire.failPings() }
        stand.enter { wire.failPings() }
        #expect(wire.state == .closed)
    }
}
