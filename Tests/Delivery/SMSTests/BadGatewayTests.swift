import Curl
import DeliveryOutcomes
import Domain
import EventLoop
import TestSupport
import Testing

@testable import SMS

/// Gateways that are slow, down, or give invalid answers. A message that was certainly not accepted goes to the
/// next gateway; one that may have been accepted goes to no other.
@Suite struct BadGatewayTests {
    private func dialect(_ gateway: TestGateway) throws -> GenericHTTPDialect {
        GenericHTTPDialect(
            method: "POST", url: try RequestTemplate(gateway.url + "/?to={to}"), body: try RequestTemplate("{text}"))
    }

    @Test func unreachableGatewayIsDown() async throws {
        let gateway = try await TestGateway { _ in .status(200) }
        await gateway.goDown()
        try await Fixture.with { fixture in
            let by = try dialect(gateway)
            #expect(await fixture.send(message(), by: by).word == .down)
        }
        #expect(gateway.asked.isEmpty)
    }

    @Test func unansweredRequestIsAmbiguous() async throws {
        let gateway = try await TestGateway { _ in .silence }
        try await Fixture.with { fixture in
            let outcome = try await fixture.send(message(), by: dialect(gateway), within: .seconds(2))
            // On a slow machine the request may not even have arrived.
            #expect(outcome.word == .ambiguous || gateway.asked.isEmpty)
        }
    }

    @Test func connectionClosedAfterTheRequestIsAmbiguous() async throws {
        let gateway = try await TestGateway { _ in .hangUp }
        try await Fixture.with { fixture in
            let one = try dialect(gateway)
            for number in 1...3 { #expect(await fixture.send(message(number), by: one).word == .ambiguous) }
        }
        // No library repeated a request.
        #expect(gateway.asked.count == 3)
    }

    /// A kept connection may be dead for the second message, which would then be sent twice.
    @Test func connectionIsNotReused() async throws {
        let gateway = try await TestGateway { _ in .status(200) }
        try await Fixture.with { fixture in
            let web = HTTPGateway(name: "one", dialect: try dialect(gateway))
            let first = await fixture.loop.perform { await web.send(message(1), within: timeout) }
            gateway.answer { _ in .hangUp }
            let second = await fixture.loop.perform { await web.send(message(2), within: timeout) }
            #expect(first == .accepted && second.word == .ambiguous)
            await web.close()
        }
        #expect(gateway.asked.count == 2)
    }

    @Test(
        "an invalid answer",
        arguments: [
            ("SSH-2.0-OpenSSH\r\n", GatewayOutcome.Word.ambiguous), ("HTTP/1.1 204 Fine\r\n\r\n", .accepted),
            ("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", .fault),
            ("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nxxxx", .ambiguous),
            ("HTTP/1.1 503 Later\r\nretry-after: 3\r\ncontent-length: 1000\r\n\r\n", .busy),
        ])
    func malformedGatewayAnswerIsHandled(_ text: String, _ word: GatewayOutcome.Word) async throws {
        let gateway = try await TestGateway { _ in .raw(text) }
        try await Fixture.with { fixture in
            let one = try dialect(gateway)
            let outcome = await fixture.send(message(), by: one, within: .seconds(3))
            #expect(outcome.word == word || gateway.asked.isEmpty)
        }
    }

    @Test func ambiguousMessageIsNotSentElsewhere() async throws {
        let (first, second) = (try await TestGateway { _ in .hangUp }, try await TestGateway { _ in .status(200) })
        try await Fixture.with { fixture in
            let gateways = [
                HTTPGateway(name: "first", dialect: try dialect(first)),
                HTTPGateway(name: "second", dialect: try dialect(second)),
            ]
            let exchange = fixture.exchange(gateways, [.init(gateway: "first"), .init(gateway: "second")])
            guard case .ambiguous(_) = await fixture.send(message(1), over: exchange).outcome else {
                Issue.record("not ambiguous")
                return
            }
            #expect(second.asked.isEmpty)
            // At the next attempt it does not go there either, whatever happened to the first gateway.
            await first.goDown()
            guard case .retry(after: _, reason: _) = await fixture.send(message(1), over: exchange).outcome else {
                Issue.record("it was not to be asked again")
                return
            }
            #expect(second.asked.isEmpty)
            // Other messages are not affected.
            #expect(await fixture.send(message(2), over: exchange).outcome == .accepted(by: "second"))
            try await first.comeBack()
            fixture.time.advance(by: .seconds(5))
            first.answer { _ in .status(200) }
            #expect(await fixture.send(message(1), over: exchange).outcome == .accepted(by: "first"))
            await exchange.close()
        }
        #expect(second.asked.count == 1)
    }
}
