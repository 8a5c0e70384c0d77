import Curl
import Domain
import EventLoop
import Log
import Synchronization
import TestSupport
import World

@testable import SMS

let timeout = Duration.seconds(120)

/// Gateways on a separate loop, for the duration of a test.
struct Fixture: Sendable {
    let loop: EventLoop
    let time = TestTime()
    let sink = MemorySink()

    static func with<Value: Sendable>(_ body: (Fixture) async throws -> Value) async throws -> Value {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        return try await body(Fixture(loop: group.loops[0]))
    }

    /// Sends a message through one gateway, and returns the outcome.
    func send(
        _ message: SMSMessage, by dialect: any HTTPGatewayDialect, within limit: Duration = timeout
    ) async -> GatewayOutcome {
        var options = HTTPGateway.Options()
        options.connectTimeout = timeout
        let gateway = HTTPGateway(name: "one", dialect: dialect, options: options)
        let outcome = await loop.perform { await gateway.send(message, within: limit) }
        await gateway.close()
        return outcome
    }

    func exchange(
        _ gateways: [any SMSGateway], _ routes: [SMSRouting.Route], limits: [String: Duration] = [:],
        observer: (any SMSObserver)? = nil
    ) -> SMSDispatcher {
        SMSDispatcher(
            SMSDispatcher.Setup(gateways, routing: SMSRouting(routes), limits: limits), time: time,
            log: Log(minimum: .debug, time: time, sink: sink), observer: observer)
    }

    func send(_ message: SMSMessage, over exchange: SMSDispatcher, left: Duration = .seconds(300)) async -> SMSReport {
        await loop.perform { await exchange.send(message, left: left) }
    }
}

/// A gateway that needs no network.
final class ScriptedGateway: SMSGateway {
    let name: String
    private let state: Mutex<(answer: @Sendable (SMSMessage) async -> GatewayOutcome, got: [String])>

    init(_ name: String, _ answer: @escaping @Sendable (SMSMessage) async -> GatewayOutcome = { _ in .accepted }) {
        self.name = name
        state = Mutex((answer, []))
    }

    func send(_ message: SMSMessage, within limit: Duration) async -> GatewayOutcome {
        let answer = state.withLock { state in
            state.got.append(message.id)
            return state.answer
        }
        return await answer(message)
    }

    /// The ids of the messages that the gateway got.
    var got: [String] { state.withLock { $0.got } }

    func answer(_ answer: @escaping @Sendable (SMSMessage) async -> GatewayOutcome) {
        state.withLock { $0.answer = answer }
    }

    func close() async {}
}

func message(
    _ number: Int = 1, _ text: String = "Your code is 123456", to: String = "+4915112345678"
) -> SMSMessage {
    let id = String(number)
    return SMSMessage(id: String(repeating: "0", count: 32 - id.count) + id, to: to, text: text)
}
