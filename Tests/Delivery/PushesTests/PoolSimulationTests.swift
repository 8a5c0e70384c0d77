import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP
import HTTP2
import JSON
import Log
import TLS
import TestSupport
import Testing
import World

@testable import Pushes

/// A pool under all kinds of events, in an order that a seed determines, in virtual time.
@Suite struct PoolSimulationTests {
    @Test(arguments: 1...24 as ClosedRange<UInt64>) func everyPushHasOneOutcomeUnderRandomFaults(seed: UInt64) throws {
        let simulation = try PoolSimulation(seed: seed)
        simulation.run(events: 3000)
        #expect(simulation.accepted > 100, "the run must include deliveries")
        #expect(simulation.waited > 0, "the run must include pushes that wait")
    }
}

private final class PoolSimulation {
    /// The known facts about one push.
    private struct Report {
        var outcomes: [DeliveryOutcome] = []
        let end: Instant
        /// In flight or accepted, so it must not be sent again.
        var isOut = false
        var accepted = 0
    }

    private let world: SimulatedWorld
    private let loop: EventLoop
    private let loopState: PushLoop
    private let gauges = PushGauges()
    private let shared: PushSharedState
    private let ledger: Ledger
    private var chance: SeededRandomness { world.chance }
    private(set) var accepted = 0
    private(set) var waited = 0

    private final class Ledger {
        var reported: [String: Report] = [:]
        var wires: [SimulatedTransport] = []
        var number: UInt64 = 0
        /// The number of pushes without an outcome.
        var left = 0
    }

    init(seed: UInt64) throws {
        world = SimulatedWorld(seed: seed)
        let (world, ledger) = (world, Ledger())
        self.ledger = ledger
        loop = world.loop("pushes")
        let team = try FakeTeam(at: world.time.now())
        let isCautious = seed % 4 != 0
        let provider = try team.issueProvider(at: world.time.now())
        let credential: APNsCredential =
            isCautious
            ? .token(key: team.key, keyID: team.keyID, teamID: team.teamID)
            : .certificate(chainPEM: try provider.certificatePEM(), key: try provider.keyPEM())
        let log = Log(minimum: .error, time: world.time, sink: MemorySink())
        let identity = try PushIdentity(
            credential, trust: .pem(try team.authority.certificatePEM()), time: world.time, log: log)
        var options = PushOptions()
        options.connections = 1 + Int(seed % 3)
        options.capacity = 40
        options.resolver = { _, port in
            .success((1...3).compactMap { SocketAddress(host: "127.0.0.\($0)", port: port) })
        }
        shared = PushSharedState(
            endpoint: .production, dialect: APNsDialect(topic: "com.example.app"), identity: identity, time: world.time,
            randomness: world.chance, log: log, options: options, observer: nil)
        let (loop, shared, gauges) = (loop, shared, gauges)
        loopState = loop.asCurrent {
            PushLoop(loop: loop, shared: shared, gauges: gauges) { _, _ in
                { address, opened in
                    let wire = SimulatedTransport(
                        address: address.description, isCautious: isCautious,
                        took: { id in
                            #expect(ledger.reported[id]?.isOut == false, "sent twice")
                            #expect(ledger.reported[id]?.outcomes.isEmpty == true, "sent after its outcome")
                            #expect(ledger.reported[id].map { $0.end > world.time.instant() } == true, "sent too late")
                            ledger.reported[id]?.isOut = true
                        }, opened: opened)
                    ledger.wires.append(wire)
                    return wire
                }
            }
        }
    }

    func run(events: Int) {
        for _ in 0..<events {
            loop.asCurrent { happen() }
            settle()
            check()
        }
        // From here on the service is silent: every remaining push gets its outcome in time.
        _ = world.run(for: .seconds(30)) { false }
        for (id, reported) in ledger.reported {
            #expect(reported.outcomes.count == 1, "\(id): \(reported.outcomes)")
            #expect(reported.accepted <= 1, "\(id) was accepted twice")
        }
        loop.asCurrent { loopState.close() }
        settle()
        for wire in ledger.wires { #expect(wire.state == .closed) }
    }

    /// Runs everything that can happen without time passing.
    private func settle() { _ = world.run(for: .zero) { false } }

    private func roll(_ sides: Int) -> Int { Int(chance.number(below: UInt64(sides))) }

    private func any<Element>(_ all: [Element]) -> Element? { all.isEmpty ? nil : all[roll(all.count)] }

    private func happen() {
        ledger.wires.removeAll { $0.state == .closed }
        let usable = ledger.wires.filter { $0.state == .open || $0.state == .goingAway }
        switch roll(100) {
        case 0..<35: for _ in 0...roll(6) { send() }
        case 35..<65:
            for _ in 0...roll(8) {
                guard let wire = any(usable), let number = any(wire.underway) else { break }
                answer(wire, number)
            }
        case 65..<75:
            for wire in ledger.wires where wire.state == .connecting {
                if roll(4) == 0 { wire.refuse() } else { wire.open(limit: [0, 1, 2, 5, 1000][roll(5)]) }
            }
        case 75..<80: any(usable)?.allow([0, 1, 1, 3, 8, 1000][roll(6)])
        case 80..<82:
            guard let wire = any(usable) else { break }
            goAway(wire, last: any([-1] + wire.underway) ?? 0)
        case 82..<83: any(usable)?.close()
        case 83..<86:
            guard let wire = any(usable), let number = any(wire.underway) else { break }
            reset(wire, number, isRefused: roll(2) == 0)
        case 86..<94: for wire in usable { wire.answerPings() }
        case 94..<95: any(usable.filter(\.isDoubted))?.failPings()
        case 95..<99: world.time.advance(by: .milliseconds(roll(2000)))
        default: world.time.advance(by: .seconds(roll(120)))
        }
    }

    private func send() {
        ledger.number += 1
        let digits = String(ledger.number)
        let id = "00000000-0000-0000-0000-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits
        let lives = Duration.milliseconds([50, 1000, 4000, 300_000][roll(4)])
        let push = Sample.push(id: id, expiresAt: world.time.now() + lives)
        let now = world.time.instant()
        ledger.left += 1
        // The fraction of a millisecond that the wall clock drops does not matter.
        ledger.reported[id] = Report(end: now + min(lives, shared.options.deadline))
        loopState.send(push) { [ledger] outcome in
            ledger.reported[id]?.outcomes.append(outcome)
            ledger.left -= 1
            #expect(ledger.reported[id]?.outcomes.count == 1, "two outcomes")
        }
    }

    private func answer(_ wire: SimulatedTransport, _ number: Int32) {
        var body: JSONObject = [:]
        var status = 200
        switch roll(40) {
        case 0: (status, body) = (503, ["reason": "ServiceUnavailable"])
        case 1: (status, body) = (500, ["reason": "InternalServerError"])
        case 2: (status, body) = (410, ["reason": "Unregistered"])
        case 3: (status, body) = (429, ["reason": "TooManyRequests"])
        case 4: (status, body) = (400, ["reason": "BadPriority"])
        case 5 where roll(20) == 0: (status, body) = (403, ["reason": "InvalidProviderToken"])
        default: break
        }
        let response = Response(status: status, body: status == 200 ? [] : JSONWriter.write(body))
        // The callback of the answer may send the push again, if the answer permits that.
        if status >= 500, let id = wire.id(of: number) { ledger.reported[id]?.isOut = false }
        if status == 200, let id = wire.id(of: number) {
            ledger.reported[id]?.accepted += 1
            accepted += 1
        }
        wire.answer(number, response)
    }

    private func reset(_ wire: SimulatedTransport, _ number: Int32, isRefused: Bool) {
        if isRefused, let id = wire.id(of: number) { ledger.reported[id]?.isOut = false }
        wire.reset(number, isRefused: isRefused)
    }

    private func goAway(_ wire: SimulatedTransport, last: Int32) {
        guard wire.state == .open else { return }
        for number in wire.underway where number > last {
            if let id = wire.id(of: number) { ledger.reported[id]?.isOut = false }
        }
        wire.goAway(last: last)
    }

    /// Checks the invariants that always hold.
    private func check() {
        var snapshot = PushSnapshot()
        gauges.add(to: &snapshot, at: world.time.instant())
        let open = ledger.wires.filter { $0.state == .open }
        let healthy = open.filter { !$0.isDoubted }
        if snapshot.queued > 0 {
            waited += 1
            let free = (healthy.isEmpty ? open : healthy).filter(\.hasRoom)
            #expect(free.isEmpty, "\(snapshot.queued) wait, and \(free.count) connections have room")
        }
        #expect(snapshot.queued <= shared.options.capacity + 1000)
        let out = ledger.wires.filter { $0.state != .closed }.reduce(0) { $0 + $1.activeStreams }
        #expect(snapshot.inFlight == out)
        #expect(snapshot.queued + snapshot.inFlight == ledger.left, "every push is either sent or waits")
    }
}
