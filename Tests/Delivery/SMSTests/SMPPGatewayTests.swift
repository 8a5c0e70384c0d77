import Bytes
import EventLoop
import Log
import SMPP
import TestSupport
import Testing
import World

@testable import SMS

@Suite struct SMPPGatewayTests {
    private static let refused = UInt32(0x0000_000B)
    private static let throttled = UInt32(0x0000_0058)

    private func gateway(
        _ fixture: Fixture, port: UInt16, password: String = "secret08", limit: Duration = timeout
    ) -> SMPPGateway {
        let options = SMPPOptions(
            host: "127.0.0.1", port: port, systemID: "relay", password: Secret(utf8: password))
        return SMPPGateway(
            name: "one", options: options, limit: limit, loop: fixture.loop, randomness: SystemRandomness(),
            log: Log(sink: fixture.sink))
    }

    @Test(
        "the outcome of a gateway's status",
        arguments: [
            (UInt32(0), GatewayOutcome.Word.accepted), (Self.refused, .refused), (Self.throttled, .busy),
        ])
    func smppStatusMapsToAnOutcome(_ status: UInt32, _ word: GatewayOutcome.Word) async throws {
        var script = FakeSMSC.Script()
        script.answer = { _ in status == 0 ? .accept : .status(status) }
        let smsc = try await FakeSMSC.start(script)
        try await Fixture.with { fixture in
            // If the gateway is throttled, the client retries until the time of the message is over.
            let one = gateway(fixture, port: smsc.port, limit: word == .busy ? .seconds(4) : timeout)
            let outcome = await one.send(message(1, "Ваш код: 123456"), within: timeout)
            // On a slow machine the message may not even have arrived.
            #expect(outcome.word == word || word == .busy && smsc.record.submits.isEmpty)
            await one.close()
        }
        await smsc.stop()
    }

    @Test func unansweredSubmitIsAmbiguous() async throws {
        var script = FakeSMSC.Script()
        script.answer = { _ in .cut }
        let smsc = try await FakeSMSC.start(script)
        try await Fixture.with { fixture in
            let one = gateway(fixture, port: smsc.port)
            #expect(await one.send(message(), within: timeout).word == .ambiguous)
            await one.close()
        }
        await smsc.stop()
    }

    /// Other gateways have used up most of the message's time.
    @Test func messageDeadlineIsRespected() async throws {
        var script = FakeSMSC.Script()
        script.answer = { _ in .silence }
        let smsc = try await FakeSMSC.start(script)
        try await Fixture.with { fixture in
            let one = gateway(fixture, port: smsc.port)
            let outcome = await one.send(message(), within: .seconds(2))
            // On a slow machine the session may not even be bound.
            #expect(outcome.word == .ambiguous || smsc.record.submits.isEmpty, "\(outcome)")
            await one.close()
        }
        await smsc.stop()
    }

    @Test func wrongSMPPPasswordSendsNothing() async throws {
        let smsc = try await FakeSMSC.start()
        try await Fixture.with { fixture in
            let one = gateway(fixture, port: smsc.port, password: "wrong")
            #expect(await one.send(message(), within: timeout).word == .down)
            #expect(one.fault != nil)
            await one.close()
        }
        await smsc.stop()
    }
}
