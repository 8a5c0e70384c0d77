import EventLoop
import JSON
import Synchronization
import TestSupport
import Testing
import World

/// A relay that is killed repeatedly, and the website that receives its webhooks.
final class WebhookKillFixture: Sendable {
    typealias Moment = WebhookKillTests.Moment

    /// The webhooks of a login that ends with a lock: two, in this order.
    private struct ExpectedWebhook {
        let moment: Moment
        let challenge: String
    }

    private struct State {
        var tally: [Moment: Int] = [:]
        var webhooks: [ExpectedWebhook] = []
        /// The website's answers to the next webhooks of a challenge.
        var script: [String: [TestGateway.Answer]] = [:]
        /// The type of webhooks to which the answers apply, by challenge.
        var types: [String: String] = [:]
    }

    private let fixture: Fixture
    private let shop: WebhookShop
    private let chance: SeededRandomness
    private let gate = Gate()
    private let state: Script
    private var relay: RunningRelay { fixture.relay }

    /// The scripted answers of the website. Its server needs them before the fixture exists.
    private final class Script: Sendable {
        let state = Mutex(State())

        func answer(_ asked: TestGateway.Asked) -> TestGateway.Answer {
            let (type, challenge) = WebhookShop.subject(asked)
            guard let challenge else { return .status(200) }
            return state.withLock { state in
                guard state.types[challenge] == type, var answers = state.script[challenge], !answers.isEmpty else {
                    return .status(200)
                }
                let answer = answers.removeFirst()
                state.script[challenge] = answers
                return answer
            }
        }
    }

    static func start(_ store: StoreKind, seed: UInt64) async throws -> WebhookKillFixture {
        let script = Script()
        let server = try await TestGateway { script.answer($0) }
        let fixture = try await Fixture.start(store) { settings in
            try settings.set("webhooks.allow", to: "127.0.0.0/8")
            try settings.set("metrics.listen", to: "127.0.0.1:0")
        }
        let shop = try await WebhookShop("called", server, of: fixture.relay)
        return WebhookKillFixture(fixture, shop, script, SeededRandomness(seed: seed))
    }

    private init(_ fixture: Fixture, _ shop: WebhookShop, _ script: Script, _ chance: SeededRandomness) {
        self.fixture = fixture
        self.shop = shop
        state = script
        self.chance = chance
    }

    var kills: Int { state.state.withLock { $0.tally.values.reduce(0, +) } }

    func summary(_ store: StoreKind) -> String {
        let heard = shop.heard
        return state.state.withLock { state in
            let all = Moment.allCases.filter { state.tally[$0] != nil }.map { "\($0) \(state.tally[$0] ?? 0)" }
            return "webhook kills on \(store): \(state.tally.values.reduce(0, +)) (\(all.joined(separator: ", "))); "
                + "\(Set(heard.map(\.id)).count) events came in \(heard.count) calls, and none was lost"
        }
    }

    // MARK: The kills

    /// Locks a user by a wrong number, kills the relay at that moment, and starts another one.
    func killRelay(at moment: Moment) async throws {
        let username = "\(moment)-\(kills)"
        let phone = try await shop.enrol(username)
        let login = try await shop.login(username)
        prepare(moment, login.challenge)
        var wrong = phone.answer(login)
        wrong.set("number", .string(login.number == "10" ? "11" : "10"))
        let answer = { [gate] in try await phone.client.insist("POST", "/success", wrong, gate: gate) }
        switch moment {
        case .commit:
            let lock = try await StoreLock.take(relay)
            let line = try await phone.client.line()
            async let lost = line.send("POST", "/success", wrong)
            // The next request on the connection was answered, so the relay has the first one.
            _ = try await line.send("GET", "/health").get()
            await relay.kill()
            await lock.release()
            _ = await lost
        case .anywhere:
            async let lost = try? phone.client.send("POST", "/success", wrong)
            await pause(below: 60_000)
            await relay.kill()
            _ = await lost
        case .sent:
            _ = try await answer()
            await shop.hears("login.decided", of: login.challenge)
        case .leased:
            _ = try await answer()
            await shop.hears("login.decided", of: login.challenge)
            try await killAndRestart(at: .sent)
            await shop.hears("login.decided", of: login.challenge, times: 2)
        case .between:
            _ = try await answer()
            await shop.hears("user.locked", of: login.challenge)
        case .failed:
            _ = try await answer()
            _ = try await relay.logged("event=webhook.failed")
        case .settled:
            _ = try await answer()
            await shop.hears("login.decided", of: login.challenge)
            await pause(below: 20_000)
        case .unsettled:
            let before = try await tries()
            _ = try await answer()
            await shop.hears("login.decided", of: login.challenge)
            // The kill must come while the website answers; at worst it comes a moment later.
            let lock = try await StoreLock.take(relay)
            while try await tries() == before { await pause(below: 50_000) }
            await relay.kill()
            await lock.release()
        }
        try await killAndRestart(at: moment)
        // The phone never saw the answer, so it repeats the request.
        let result = try await answer()
        #expect(result.status == 200 || result["code"] == "already_decided" || result.status == 403, "\(result)")
        state.state.withLock { $0.webhooks.append(ExpectedWebhook(moment: moment, challenge: login.challenge)) }
    }

    private func prepare(_ moment: Moment, _ challenge: String) {
        let answers: [TestGateway.Answer] =
            switch moment {
            case .commit, .anywhere, .settled: []
            case .sent, .between: [.silence]
            case .leased: [.silence, .silence]
            case .failed: [.status(503)]
            case .unsettled:
                [
                    .slowly(
                        "HTTP/1.1 200 OK\r\nx: \(String(repeating: "x", count: 60))\r\ncontent-length: 0\r\n\r\n",
                        pause: .milliseconds(20))
                ]
            }
        state.state.withLock { state in
            state.types[challenge] = moment == .between ? "user.locked" : "login.decided"
            state.script[challenge] = answers
        }
    }

    private func killAndRestart(at moment: Moment) async throws {
        await relay.kill()
        state.state.withLock { $0.tally[moment, default: 0] += 1 }
        try await relay.restart()
    }

    private func tries() async throws -> Int {
        let page = try await MetricsPage.curl(try await MetricsPage.address(of: relay), "/metrics")
        return MetricsPage.number("twoefay_webhook_attempts_total", page) ?? 0
    }

    private func pause(below microseconds: UInt64) async {
        let moment = Duration.microseconds(Int64(chance.number(below: microseconds)))
        await Clients.loop.perform { await Clients.loop.sleep(for: moment) }
    }

    // MARK: Results

    /// Waits until the outbox is empty, and checks the webhooks that arrived.
    func check() async throws {
        try await fixture.drained()
        let heard = shop.heard
        let forged = heard.filter { !$0.isTrue }
        #expect(forged.isEmpty, "\(forged)")
        let webhooks = state.state.withLock { $0.webhooks }
        for webhook in webhooks {
            let calls = heard.filter { $0.challenge == webhook.challenge }
            let decided = calls.filter { $0.type == "login.decided" }
            let locked = calls.filter { $0.type == "user.locked" }
            #expect(decided.count >= webhook.moment.fewest && !locked.isEmpty, "\(webhook): \(calls)")
            #expect(Set(decided.map(\.id)).count == 1 && Set(decided.map(\.body)).count == 1, "\(webhook): \(decided)")
            #expect(Set(locked.map(\.id)).count == 1 && Set(locked.map(\.body)).count == 1, "\(webhook): \(locked)")
            // No duplicate of the first event arrives after the second event.
            #expect(calls.map(\.type) == decided.map(\.type) + locked.map(\.type), "\(webhook): \(calls)")
        }
        #expect(Set(heard.filter { $0.type == "device.bound" }.map(\.id)).count == webhooks.count)
        #expect(Set(heard.map(\.id)).count == 3 * webhooks.count, "\(heard)")
        #expect(try relay.count("SELECT count(*) FROM audit WHERE event = 'webhook.dead'") == 0)
        try Ledger.read(relay) { try $0.check() }
    }
}
