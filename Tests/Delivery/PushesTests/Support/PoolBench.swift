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

/// The sender of one loop over simulated connections, in virtual time. The test decides what the services send.
final class PoolBench {
    /// An object that lives as long as the closure with which a pool opens its connections.
    final class Lease {}

    final class Record {
        var wires: [(endpoint: PushEndpoint, wire: SimulatedTransport)] = []
        var leases: [Weak] = []
        var outcomes: [String: [DeliveryOutcome]] = [:]
    }

    struct Weak { weak var lease: Lease? }

    let world: SimulatedWorld
    let loop: EventLoop
    let shared: PushSharedState
    let loopState: PushLoop
    let record = Record()
    let sink = MemorySink()
    private let team: FakeTeam
    private let log: Log
    private var number = 0

    init(connections: Int = 1, observer: (any PushObserver)? = nil) throws {
        world = SimulatedWorld(seed: 1)
        let (world, record) = (world, record)
        loop = world.loop("pushes")
        team = try FakeTeam(at: world.time.now())
        log = Log(minimum: .debug, time: world.time, sink: sink)
        var options = PushOptions()
        options.connections = connections
        options.stagger = .zero
        options.resolver = { _, port in .success([SocketAddress(host: "127.0.0.1", port: port)].compactMap(\.self)) }
        shared = PushSharedState(
            endpoint: .production, dialect: APNsDialect(topic: team.topic),
            identity: try Self.identity(team, world, log), time: world.time, randomness: world.chance, log: log,
            options: options, observer: observer)
        let (loop, shared) = (loop, shared)
        loopState = loop.asCurrent {
            PushLoop(loop: loop, shared: shared, gauges: PushGauges()) { endpoint, _ in
                let lease = Lease()
                record.leases.append(Weak(lease: lease))
                return { address, opened in
                    withExtendedLifetime(lease) {}
                    let wire = SimulatedTransport(
                        address: address.description, isCautious: false, took: { _ in }, opened: opened)
                    record.wires.append((endpoint, wire))
                    return wire
                }
            }
        }
    }

    /// An identity with a certificate, so that a connection carries several pushes from the start.
    private static func identity(_ team: FakeTeam, _ world: SimulatedWorld, _ log: Log) throws -> PushIdentity {
        let provider = try team.issueProvider(at: world.time.now())
        return try PushIdentity(
            .certificate(chainPEM: try provider.certificatePEM(), key: try provider.keyPEM()),
            trust: .pem(try team.authority.certificatePEM()), time: world.time, log: log)
    }

    func replace() throws {
        shared.adopt(try Self.identity(team, world, log))
        enter { loopState.adopt() }
    }

    /// Runs `body` in one turn, and then everything that can happen without time passing.
    func enter<Value>(_ body: () throws -> Value) rethrows -> Value {
        defer { settle() }
        return try loop.asCurrent(body)
    }

    func settle() { _ = world.run(for: .zero) { false } }

    func pass(_ duration: Duration) {
        let end = world.time.instant() + duration
        _ = world.run(for: duration) { false }
        world.time.advance(to: end)
        settle()
    }

    func wires(_ endpoint: PushEndpoint = .production) -> [SimulatedTransport] {
        record.wires.filter { $0.endpoint == endpoint }.map(\.wire)
    }

    /// Returns the connection that was opened last.
    func wire(_ endpoint: PushEndpoint = .production) throws -> SimulatedTransport {
        try #require(wires(endpoint).last)
    }

    /// Opens the connections that are being established.
    func open(limit: Int = 100) {
        settle()
        enter { for (_, wire) in record.wires where wire.state == .connecting { wire.open(limit: limit) } }
    }

    /// Sends a push, and returns its index in the record for `outcomes`.
    @discardableResult
    func send(_ environment: APNsNotification.Environment = .production, lives: Duration = .seconds(300)) -> String {
        enter { begin(environment, lives: lives) }
    }

    /// Sends a push within a turn.
    @discardableResult
    func begin(_ environment: APNsNotification.Environment = .production, lives: Duration = .seconds(300)) -> String {
        number += 1
        let digits = String(number)
        let id = "00000000-0000-0000-0000-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits
        let push = Sample.push(id: id, environment: environment, expiresAt: world.time.now() + lives)
        loopState.send(push) { [record] in record.outcomes[id, default: []].append($0) }
        return id
    }

    func outcomes(_ id: String) -> [DeliveryOutcome] { record.outcomes[id] ?? [] }

    /// Answers the oldest push that is in flight on the connection.
    func answer(_ wire: SimulatedTransport, _ status: Int = 200, _ reason: String? = nil) throws {
        let stream = try #require(wire.underway.first)
        var object: JSONObject = [:]
        if let reason { object["reason"] = .string(reason) }
        let body = reason == nil ? [] : JSONWriter.write(object)
        enter { wire.answer(stream, Response(status: status, body: body)) }
    }
}
