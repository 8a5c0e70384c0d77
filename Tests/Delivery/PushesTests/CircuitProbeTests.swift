import DeliveryOutcomes
import Testing
import World

@testable import Pushes

/// The push that probes a refused credential may fail for another reason first.
@Suite struct CircuitProbeTests {
    private func refused() throws -> PoolBench {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let first = stand.send()
        try stand.answer(stand.wire(), 403, "Forbidden")
        #expect(stand.outcomes(first) == [.misconfigured(.service, reason: "Forbidden")])
        stand.pass(.seconds(30))
        return stand
    }

    @Test(arguments: [true, false]) func probeContinuesOnAnotherConnection(goesAway: Bool) throws {
        let stand = try refused()
        let trial = stand.send()
        let wire = try stand.wire()
        if goesAway {
            stand.enter { wire.goAway(last: -1) }
        } else {
            try stand.answer(wire, 503, "ServiceUnavailable")
        }
        let other = stand.send()
        #expect(stand.outcomes(other) == [.misconfigured(.service, reason: "Forbidden")], "only one push is the probe")
        stand.open()
        #expect(stand.outcomes(trial) == [])
        try stand.answer(stand.wire())
        #expect(stand.outcomes(trial) == [.accepted(by: nil)])
        let next = stand.send()
        try stand.answer(stand.wire())
        #expect(stand.outcomes(next) == [.accepted(by: nil)])
    }

    @Test func refusedProbeReopensTheCircuit() throws {
        let stand = try refused()
        let trial = stand.send()
        try stand.answer(stand.wire(), 403, "Forbidden")
        #expect(stand.outcomes(trial) == [.misconfigured(.service, reason: "Forbidden")])
        let next = stand.send()
        #expect(stand.outcomes(next) == [.misconfigured(.service, reason: "Forbidden")])
    }
}
