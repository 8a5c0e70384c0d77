import Bytes
import Curl
import DeliveryOutcomes
import Domain
import TestSupport
import Testing

@testable import SMS

/// A real Kannel accepts the relay's messages, and its SMSC gets them unchanged.
@Suite(.timeLimit(.minutes(5)), .mayBlock, .enabled(if: RunningKannel.isInstalled, "Kannel is not installed"))
struct RealKannelTests {
    private func dialect(_ kannel: RunningKannel, _ method: Kannel.Method, password: String) throws -> Kannel {
        Kannel(
            url: try #require(TransferURL(kannel.url)), method: method, username: RunningKannel.username,
            password: Secret(utf8: password), from: "Shop")
    }

    @Test(arguments: Kannel.Method.allCases) func codesArriveThroughKannel(_ method: Kannel.Method) async throws {
        let kannel = try await RunningKannel()
        let texts = [
            "123456 ist Ihr Code für Köln & Söhne, 5 € {a} 100% +1", "Ваш код: 123456 日本 👍",
        ]
        try await Fixture.with { fixture in
            let one = try dialect(kannel, method, password: RunningKannel.password)
            for (number, text) in texts.enumerated() {
                #expect(await fixture.send(message(number, text), by: one) == .accepted)
                let arrived = try await kannel.arrived(number + 1)
                #expect(arrived.text == text)
                #expect(arrived.from == "Shop" && arrived.to == "+4915112345678")
                #expect(arrived.coding == (number == 0 ? "text" : "ucs-2"))
            }
        }
    }

    @Test func wrongKannelPasswordIsAFaultAndFallsBack() async throws {
        let kannel = try await RunningKannel()
        try await Fixture.with { fixture in
            let gateways = [
                HTTPGateway(name: "wrong", dialect: try dialect(kannel, .get, password: "wrong")),
                HTTPGateway(name: "right", dialect: try dialect(kannel, .get, password: RunningKannel.password)),
            ]
            let exchange = fixture.exchange(gateways, [.init(gateway: "wrong"), .init(gateway: "right")])
            let report = await fixture.send(message(), over: exchange)
            #expect(report.outcome == .accepted(by: "right"))
            #expect(report.attempts.map(\.outcome.word) == [.fault, .accepted])
            #expect(try await kannel.arrived(1).text == message().text)
            await exchange.close()
        }
    }
}
