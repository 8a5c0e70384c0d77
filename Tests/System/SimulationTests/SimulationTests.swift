import Domain
import TestSupport
import Testing

/// Runs `Scenario` under many seeds, and checks its invariants in the results and in the store.
@Suite(.mayBlock) struct SimulationTests {
    @Test(arguments: 0..<25) func simulatedClusterLosesNothingAndCountsNothingTwice(seed: UInt64) throws {
        let scenario = try Scenario(seed: seed)
        #expect(try scenario.run(users: 4, logins: 5, kills: 20), "something never ended")
        let logins = scenario.logins
        #expect(logins.count == 20)
        for login in logins {
            let result = try #require(login.result, "a login without a result: \(login)")
            // Website and phone received the same result.
            if let acknowledged = login.acknowledged { #expect(acknowledged == result, "\(login)") }
            // All webhooks about the login reported this result too.
            let called = scenario.webhooks.ends(of: try #require(login.challenge))
            #expect(!called.isEmpty && Set(called) == [result], "\(login)")
            // No login succeeds without an approval by its phone.
            if result == "success" { #expect(login.decided == .approve, "\(login)") }
        }
        let ends = try scenario.ask(
            """
            SELECT count(*) FROM (SELECT challenge_id FROM audit WHERE event IN
            ('challenge.answered', 'challenge.expired', 'challenge.cancelled')
            GROUP BY challenge_id HAVING count(*) > 1)
            """)
        #expect(ends == 0, "a challenge with two ends")
        #expect(try scenario.ask("SELECT count(*) FROM challenge") == 20, "a login asked for twice")
        #expect(try scenario.ask("SELECT count(*) FROM challenge WHERE decided_at IS NULL") == 0)
        let endless = "SELECT count(*) FROM step WHERE state IN ('queued', 'sent', 'seen')"
        #expect(try scenario.ask(endless) == 0, "a step without an end")
        let twice = """
            SELECT count(*) FROM (SELECT challenge_id FROM audit WHERE event = 'push.settled'
            GROUP BY challenge_id, device_id HAVING count(*) > 1)
            """
        #expect(try scenario.ask(twice) == 0, "a push with two ends")
        #expect(try scenario.ask("SELECT count(*) FROM step WHERE factor = 'push' AND ordinal = 1") == 20)
        // If an answer arrives after the end of its push, it gets a separate step, but no second
        // push.
        let late = "factor = 'push' AND state = 'answered' AND coalesce(reason, '') = 'late'"
        #expect(try scenario.ask("SELECT count(*) FROM step WHERE NOT (\(late))") == 20)
        // A webhook without a confirmed delivery stays in the outbox for another attempt.
        let undone = "SELECT count(*) FROM outbox WHERE kind <> 'webhook' OR attempts = 0"
        #expect(try scenario.ask(undone) == 0, "work that nobody does")
        #expect(scenario.webhooks.faults == [])
        // The relay repeated each webhook until it was delivered, and none became a dead letter.
        #expect(try scenario.ask("SELECT count(*) FROM audit WHERE event = 'webhook.dead'") == 0)
    }

    @Test(arguments: 100..<105) func sameSeedGivesTheSameHistory(seed: UInt64) throws {
        let traces = try (0..<2).map { _ in
            let scenario = try Scenario(seed: seed)
            _ = try scenario.run(users: 3, logins: 3, kills: 4)
            return scenario.trace
        }
        #expect(traces[0] == traces[1])
        #expect(traces[0].count > 20)
    }
}
