import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// The rule by which a relay declares another one dead.
struct FailureDetectorTests {
    private let own: RelayID
    private let other: RelayID
    private let time = TestTime()

    init() throws {
        own = try #require(RelayID("00000000000000000000000000000001"))
        other = try #require(RelayID("00000000000000000000000000000002"))
    }

    /// Returns the time until the relay is declared dead, with one check for each `step`; nil if a minute is not
    /// enough.
    private func found(_ detector: inout FailureDetector, every step: Duration) -> Duration? {
        let beats = [Heartbeat(relay: own, count: 1), Heartbeat(relay: other, count: 1)]
        let start = time.instant()
        while time.instant() - start < .seconds(60) {
            if !detector.dead(beats, except: own, at: time.instant()).isEmpty { return time.instant() - start }
            time.advance(by: step)
        }
        return nil
    }

    /// Together with a heartbeat that may be one second old, and a push at once: within ten seconds.
    @Test func relayIsDeadAfterSevenSecondsWithoutHeartbeat() {
        var detector = FailureDetector()
        #expect(found(&detector, every: .seconds(1)) == .seconds(7))
    }

    @Test func relayWithAMovingHeartbeatIsAlive() {
        var detector = FailureDetector()
        for count in 0..<100 {
            let beats = [Heartbeat(relay: other, count: Int64(count / 6))]
            #expect(detector.dead(beats, except: own, at: time.instant()) == [])
            time.advance(by: .seconds(1))
        }
    }

    /// The death of a cluster node stops the store, so no relay can increment its heartbeat meanwhile.
    @Test func timeWithoutObservationBarelyCounts() {
        var detector = FailureDetector()
        let beats = [Heartbeat(relay: other, count: 1)]
        #expect(detector.dead(beats, except: own, at: time.instant()) == [])
        time.advance(by: .seconds(1))
        #expect(detector.dead(beats, except: own, at: time.instant()) == [])
        time.advance(by: .seconds(20))
        #expect(detector.dead(beats, except: own, at: time.instant()) == [])
        time.advance(by: .seconds(1))
        // The relay had a second for its heartbeat.
        let moved = [Heartbeat(relay: other, count: 2)]
        #expect(detector.dead(moved, except: own, at: time.instant()) == [])
        #expect(found(&detector, every: .seconds(1)) == .seconds(7))
    }
}
