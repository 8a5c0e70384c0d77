import Domain
import EventLoop
import JSON
import Relay
import Synchronization
import TestSupport
import Webhooks
import World

/// A webhook endpoint with faults by a seed: it is down at times, fails at random, and may accept a
/// webhook whose confirmation is lost.
final class WebhookEndpoint: WebhookCourier {
    private struct State {
        var isDown = false
        var isWell = false
        /// The reported result of each login, once for every delivery.
        var ends: [String: [String]] = [:]
        var faults: [String] = []
        var trace: [String] = []
    }

    private let time: TestTime
    private let chance: SeededRandomness
    private let state = Mutex(State())

    init(_ world: SimulatedWorld) { (time, chance) = (world.time, world.chance) }

    /// Whether the endpoint accepts everything from now on, unless it is down.
    var isWell: Bool {
        get { state.withLock { $0.isWell } }
        set { state.withLock { $0.isWell = newValue } }
    }

    var trace: [String] { state.withLock { $0.trace } }
    /// The errors of received webhooks.
    var faults: [String] { state.withLock { $0.faults } }

    func hasHeard(of challenge: String) -> Bool { state.withLock { $0.ends[challenge] != nil } }
    func ends(of challenge: String) -> [String] { state.withLock { $0.ends[challenge] ?? [] } }

    private func note(_ what: String) {
        let at = time.instant().nanoseconds / 1_000_000
        state.withLock { $0.trace.append("\(at) website \(what)") }
    }

    func disturb(on loop: EventLoop) async {
        for isDown in [true, false, true, false] {
            await loop.sleep(for: chance.milliseconds(1_000..<20_000))
            note(isDown ? "down" : "up")
            state.withLock { $0.isDown = isDown }
        }
    }

    func send(_ webhook: WebhookRequest) async -> WebhookOutcome {
        let loop = EventLoop.current
        await loop?.sleep(for: chance.milliseconds(1..<200))
        let (isDown, isWell) = state.withLock { ($0.isDown, $0.isWell) }
        let dice = isWell ? 0 : chance.number(below: 10)
        if !isDown, dice < 8 { take(webhook) }
        await loop?.sleep(for: chance.milliseconds(1..<200))
        switch dice {
        case _ where isDown: return .unanswered(.unreachable)
        case 0...6: return .answered(status: 200)
        case 7: return .unanswered(.timeout)
        case 8: return .answered(status: 503, retryAfter: .seconds(2))
        default: return .answered(status: 500)
        }
    }

    private func take(_ webhook: WebhookRequest) {
        do {
            try WebhookCheck(secrets: [RelayRig.webhookSecret]).verify(
                webhook.fields, body: webhook.body, at: time.now())
            let event = try JSONReader.read(webhook.body).object
            guard event?["type"] == "login.decided" else {
                return note("\(webhook.id) \(event?["type"]?.string ?? "-")")
            }
            guard let data = event?["data"]?.object, let end = data["login"]?.string,
                data["challenge"]?.string == webhook.id.text
            else { throw RigFailure("\(webhook.id) is about no login, or about another") }
            note("\(webhook.id) \(end)")
            state.withLock { $0.ends[webhook.id.text, default: []].append(end) }
        } catch {
            state.withLock { $0.faults.append("\(error)") }
        }
    }
}
