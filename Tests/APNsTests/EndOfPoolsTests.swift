import HTTP2
import Pushing
import Testing
import World

@testable import APNs

/// What is left when a pool is not wanted any more: nothing.
@Suite struct EndOfPoolsTests {
    @Test func whatComesBackWhileClosingIsRefused() throws {
        let stand = try PoolStand()
        stand.desk.loop.asCurrent { stand.desk.warmUp() }
        stand.open()
        let wire = try stand.wire()
        wire.isBlocked = true
        let push = stand.send()
        #expect(stand.outcomes(push) == [])
        stand.enter { stand.desk.close() }
        #expect(stand.outcomes(push) == [.retryAfter(.seconds(1), reason: "closed")])
        #expect(stand.wires().count == 1, "and no connection is opened for it")
        let next = stand.send()
        #expect(stand.outcomes(next) == [.retryAfter(.seconds(1), reason: "closed")])
    }
}
