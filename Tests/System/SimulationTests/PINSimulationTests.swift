import TestSupport
import Testing

/// Runs `PINScenario` under many seeds: the relay is killed while persons type right and wrong PINs.
@Suite(.mayBlock) struct PINSimulationTests {
    @Test(arguments: 200..<220) func killedRelayCountsEachPINOnce(seed: UInt64) throws {
        let scenario = try PINScenario(seed: seed)
        #expect(try scenario.run(users: 3, logins: 6, kills: 15), "something never ended")
        #expect(scenario.faults == [])
        // Each wrong PIN and PUK is in the audit once.
        let seen = scenario.seen
        #expect(
            try scenario.ask("SELECT count(*) FROM audit WHERE event IN ('pin.wrong', 'pin.locked')")
                == Int64(seen["wrong PIN"] ?? 0))
        #expect(
            try scenario.ask("SELECT count(*) FROM audit WHERE event IN ('puk.wrong', 'puk.locked')")
                == Int64(seen["wrong PUK"] ?? 0))
        let changes = ["set", "change", "reset"].map { seen[$0] ?? 0 }.reduce(0, +)
        #expect(
            try scenario.ask("SELECT count(*) FROM audit WHERE event IN ('pin.set', 'pin.changed', 'pin.reset')")
                == Int64(changes))
    }

    /// The seeds together cover every case: right and wrong PINs and PUKs, locks and resets.
    @Test func seedsCoverAllCases() throws {
        var seen: [String: Int] = [:]
        for seed in UInt64(300)..<306 {
            let scenario = try PINScenario(seed: seed)
            _ = try scenario.run(users: 3, logins: 6, kills: 5)
            #expect(scenario.faults == [])
            seen.merge(scenario.seen) { $0 + $1 }
        }
        for what in ["set", "change", "reset", "wrong PIN", "wrong PUK", "locked", "success"] {
            #expect(seen[what] ?? 0 > 0, "\(what)")
        }
    }

    @Test(arguments: 400..<403) func sameSeedGivesTheSameHistory(seed: UInt64) throws {
        let traces = try (0..<2).map { _ in
            let scenario = try PINScenario(seed: seed)
            _ = try scenario.run(users: 2, logins: 3, kills: 4)
            return scenario.trace
        }
        #expect(traces[0] == traces[1])
        #expect(traces[0].count > 10)
    }
}
