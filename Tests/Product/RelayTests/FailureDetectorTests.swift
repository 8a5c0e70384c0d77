import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// Who of the other relays counts as dead.
struct FailureDetectorTests {
    private let own: RelayID
    private let other: RelayID
    private let time = TestTime()

    init() throws {
        own = try #require(RelayID("00000000000000000000000000000001"))
        other = try #require(RelayID("00000000000000000000000000000002"))
    }

    /// The seconds until it counts as dead, looked at every so often, or nil if it does not within a minute.
    private func found(_ watch: inout FailureDetector, every step: Duration) -> Duration? {
        let beats = [Heartbeat(relay: own, count: 1), Heartbeat(relay: other, count: 1)]
        let start = time.instant()
        while time.instant() - start < .seconds(60) {
            if !watch.dead(beats, except: own, at: time.instant()).isEmpty { return time.instant() - start }
            time.advance(by: step)
        }
        return nil
    }

    /// With the second that its last beat may be old, and a push that is sent at once: within ten.
    @Test func relayIsDeadAfterSevenSecondsWithoutHeartbeat() {
        var watch = FailureDetector()
        #expect(found(&watch, every: .seconds(1)) == .seconds(7))
    }

    @Test func relayWithAMovingHeartbeatIsAlive() {
        var watch = FailureDetector()
        for count in 0..<100 {
            let beats = [Heartbeat(relay: other, count: Int64(count / 6))]
            #expect(watch.dead(beats, except: own, at: time.instant()) == [])
            time.advance(by: .seconds(1))
        }
    }

    /// As the store is when a node of a cluster dies: nobody could move a beat meanwhile.
    @Test func timeWithoutObservationBarelyCounts() {
        var watch = FailureDetector()
        let beats = [Heartbeat(relay: other, count: 1)]
        #expect(watch.dead(beats, except: own, at: time.instant()) == [])
        time.advance(by: .seconds(1))
        #expect(watch.dead(beats, except: own, at: time.instant()) == [])
        time.advance(by: .seconds(20))
        #expect(watch.dead(beats, except: own, at: time.instant()) == [])
        time.advance(by: .seconds(1))
        // It had a second to move it.
        let moved = [Heartbeat(relay: other, count: 2)]
        #expect(watch.dead(moved, except: own, at: time.instant()) == [])
        #expect(found(&watch, every: .seconds(1)) == .seconds(7))
    }
}
