import TestSupport
import Testing

/// Runs `TemporaryCodeScenario` under many seeds: the relay is killed while persons type right and
/// wrong codes of the help desk.
@Suite(.mayBlock) struct TemporaryCodeSimulationTests {
    @Test(arguments: 500..<515) func killedRelayCountsEachUseOnce(seed: UInt64) throws {
        let scenario = try TemporaryCodeScenario(seed: seed)
        #expect(try scenario.run(users: 3, codes: 4, kills: 12), "something never ended")
        #expect(scenario.faults == [])
        let seen = scenario.seen
        for what in ["success", "used up"] { #expect(seen[what] ?? 0 > 0, "\(what)") }
        #expect(
            try scenario.ask("SELECT count(*) FROM audit WHERE event = 'temporary.used'") == Int64(seen["success"] ?? 0)
        )
        #expect(try scenario.ask("SELECT count(*) FROM audit WHERE event = 'temporary.issued'") == 12)
        #expect(
            try scenario.ask("SELECT count(*) FROM audit WHERE event = 'code.wrong'") == Int64(seen["wrong"] ?? 0))
        #expect(try scenario.ask("SELECT sum(uses_left) FROM temporary_code") == 0)
    }

    @Test(arguments: 600..<602) func sameSeedGivesTheSameHistory(seed: UInt64) throws {
        let traces = try (0..<2).map { _ in
            let scenario = try TemporaryCodeScenario(seed: seed)
            _ = try scenario.run(users: 2, codes: 2, kills: 4)
            return scenario.trace
        }
        #expect(traces[0] == traces[1])
        #expect(traces[0].count > 8)
    }
}
