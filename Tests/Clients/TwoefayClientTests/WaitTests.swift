import TestSupport
import Testing
import TwoefayClient

@Suite("Waiting for the result") struct WaitTests {
    @Test func waitPollsUntilTheDecision() async throws {
        let carrier = ScriptedCarrier(.waiting, .waiting, .denied)
        let outcome = try await carrier.client().wait(for: "c1")
        #expect(outcome.login == .failure && outcome.reason == .denied)
        #expect(carrier.calls.map { $0.fields["prefer"] } == ["wait=60", "wait=60", "wait=60"])
        // With an idempotency key, the relay would repeat the first answer, so the wait would never
        // end.
        #expect(carrier.calls.allSatisfy { $0.fields["idempotency-key"] == nil })
        #expect(carrier.calls.allSatisfy { $0.timeout > .seconds(60) })
        // The relay answered at once. The pauses prevent a busy loop.
        #expect(carrier.pauses == [.milliseconds(500), .milliseconds(500)])
    }

    @Test func waitEndsAtItsTimeout() async throws {
        let carrier = ScriptedCarrier(.waiting, .waiting, .waiting)
        let client = carrier.client()
        for hold in [Duration.zero, .seconds(8), .seconds(90)] {
            #expect(try await client.result(of: "c1", within: hold).login == .wait)
        }
        #expect(carrier.calls.map { $0.fields["prefer"] } == [nil, "wait=8", "wait=60"])
        #expect(carrier.calls[1].timeout > .seconds(8) && carrier.calls[2].timeout > .seconds(60))
        #expect(carrier.pauses.isEmpty)
    }

    /// The relay is unavailable for longer than any other call would retry.
    @Test func waitSurvivesARelayOutage() async throws {
        let carrier = ScriptedCarrier(
            .failure(.unanswered("cut")), .failure(.unreached("1")), .failure(.unreached("2")),
            .failure(.unreached("3")), .failure(.unreached("4")), .failure(.unreached("5")),
            .failure(.unreached("6")), .failure(.unreached("7")), .failure(.unreached("8")),
            .problem(503, "unavailable", retryAfter: 2), .waiting, .denied)
        #expect(try await carrier.client().wait(for: "c1").login == .failure)
        #expect(carrier.pauses.reduce(.zero, +) > RetryPolicy().timeout)
    }

    @Test func waitEndsAfterTheLongestLifetime() async throws {
        let carrier = ScriptedCarrier(.waiting, .waiting)
        let late = LateCarrier(carrier)
        let client = RelayClient(late, time: carrier.time)
        #expect(try await client.wait(for: "c1").login == .wait)
        #expect(carrier.calls.count == 1)
    }

    @Test func waitEndsOnARefusal() async throws {
        let carrier = ScriptedCarrier(.waiting, .problem(404, "not_found"))
        let fault = await #expect(throws: CallFault.self) { try await carrier.client().wait(for: "c1") }
        #expect(fault?.problem?.code == .notFound)
    }
}

/// A relay that takes ten minutes for each answer.
private struct LateCarrier: Carrier {
    let script: ScriptedCarrier

    init(_ script: ScriptedCarrier) { self.script = script }

    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        script.time.advance(by: .seconds(600))
        return try await script.send(call)
    }

    func pause(for duration: Duration) async { await script.pause(for: duration) }
}
