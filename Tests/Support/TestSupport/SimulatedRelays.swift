import API
import Crypto
import DeliveryOutcomes
import Domain
import EventLoop
import HTTP
import Log
import Relay
import Storage
import World

/// A relay in a `SimulatedWorld` that can be killed and started again, over a store that survives.
///
/// Each start makes a new loop, `Relay` and `API`, so a restarted relay keeps nothing in memory.
/// Only one relay runs at a time. Every second it repeats its periodic work: it stores its
/// heartbeat, releases finished operations, processes due outbox entries, and delivers webhooks.
public final class SimulatedRelays {
    public let world: SimulatedWorld
    public let store: Store
    public let pushes: any PushCourier
    public let webhooks: (any WebhookCourier)?
    public let sink = MemorySink()
    /// The running process; nil after `kill`.
    public private(set) var process: Process?

    public final class Process: Sendable {
        public let loop: EventLoop
        public let relay: Relay
        public let api: API

        init(loop: EventLoop, relay: Relay, api: API) {
            self.loop = loop
            self.relay = relay
            self.api = api
        }
    }

    private let log: Log
    private let phones: CertificateAuthority
    private var started = 0

    public init(_ world: SimulatedWorld, pushes: any PushCourier, webhooks: (any WebhookCourier)? = nil) throws {
        self.world = world
        self.pushes = pushes
        self.webhooks = webhooks
        log = Log(minimum: .warning, time: world.time, sink: sink)
        let worker = world.loop("store")
        var options = StoreOptions()
        options.rows = try RelayRig.rowAuthenticator()
        store = try Store.open(
            .memory, schema: .migrate, time: world.time, log: log, options: options, worker: { _ in worker })
        phones = try CertificateAuthority.create(
            commonName: "phones", days: 10, at: world.time.now(), randomness: world.chance)
    }

    public func start() throws {
        started += 1
        let loop = world.loop("relay-\(started)")
        let relay = try RelayRig.relay(
            over: store, push: pushes, webhooks: webhooks, phones: phones, time: world.time, randomness: world.chance,
            log: log,
            isAlone: true
        ) { work in EventLoop.current?.spawn(work) }
        let api = API(
            settings: API.Settings(origin: RelayRig.origin), relay: relay, dependencies: [], time: world.time,
            randomness: world.chance, log: log, atTurnEnd: { EventLoop.atTurnEnd($0) })
        let process = Process(loop: loop, relay: relay, api: api)
        loop.post {
            loop.spawn {
                // As in the daemon, the heartbeat is stored before the first request is handled.
                await relay.runHeartbeat()
                Self.every(.seconds(1), on: loop) { await relay.runHeartbeat() }
                Self.every(.seconds(1), on: loop) { await relay.releaseLeft() }
                Self.every(.seconds(1), on: loop) { await relay.processDueEntries() }
                Self.every(.seconds(1), on: loop) { await relay.deliverWebhooks() }
            }
        }
        self.process = process
    }

    public func kill() {
        if let process { world.kill(process.loop) }
        process = nil
    }

    private static func every(_ pause: Duration, on loop: EventLoop, _ round: @escaping @Sendable () async -> Void) {
        loop.spawn {
            await round()
            loop.schedule(after: pause) { every(pause, on: loop, round) }
        }
    }
}
