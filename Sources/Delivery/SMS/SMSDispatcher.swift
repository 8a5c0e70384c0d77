import DeliveryOutcomes
import GSM
import Log
import Synchronization
import World

/// The result of one delivery attempt: the outcome and the gateway that has the message.
public struct SMSReport: Sendable, Equatable {
    public struct Attempt: Sendable, Equatable {
        public let gateway: String
        public let outcome: GatewayOutcome
    }

    public let outcome: DeliveryOutcome
    public let gateway: String?
    /// The gateways that were tried, in order.
    public let attempts: [Attempt]
    public let parts: Int
    /// The cost in millionths of a currency unit; zero unless the message was accepted.
    public let cost: Int64
}

/// An observer of deliveries, for metrics.
public protocol SMSObserver: Sendable {
    /// Reports the outcome of one message at one gateway.
    func tried(gateway: String, _ outcome: GatewayOutcome.Word, after: Duration)
    /// Reports that a gateway accepted a message.
    func sent(gateway: String, parts: Int, cost: Int64)
}

/// A dispatcher over several gateways. It sends a message to the gateway that `SMSRouting` ranks
/// first for the number. If that gateway does not accept the message, the next one is tried.
///
/// Invariant: a message that one gateway may have accepted goes to no other gateway, neither now
/// nor in a later attempt. Otherwise the user could get it twice. `GatewayAffinity` remembers the
/// gateway for 30 minutes, in memory only.
///
/// Failures:
/// - A gateway refuses the number for good: the message is refused, and no other gateway is tried.
/// - A gateway is busy, full, down, misconfigured or unsuited: the next one is tried.
/// - The answer is lost: the outcome is ambiguous, and later attempts use only that gateway.
/// - A gateway fails repeatedly: its `CircuitBreaker` opens, and it is skipped until a trial
///   succeeds.
///
/// Tests: `SMSDispatcherTests`, `SMSRoutingTests`, `CircuitBreakerTests` and `BadGatewayTests`.
public final class SMSDispatcher: Sendable {
    /// The longest time for a message: less than the 30 seconds that a courier has, so that the
    /// outcome can be recorded.
    static let timeout = Duration.seconds(25)
    /// The shortest time in which it is worth trying a gateway.
    static let shortest = Duration.seconds(1)

    /// The gateways, and the rules that assign numbers to them.
    public struct Setup: Sendable {
        let gateways: [String: any SMSGateway]
        let routing: SMSRouting
        /// The time limit of each gateway.
        let limits: [String: Duration]

        /// Creates a setup. Every gateway that a route names must be in the list.
        ///
        /// - Parameter limits: the time limit of each gateway; ten seconds by default.
        public init(_ gateways: [any SMSGateway], routing: SMSRouting, limits: [String: Duration] = [:]) {
            self.gateways = Dictionary(gateways.map { ($0.name, $0) }) { first, _ in first }
            self.routing = routing
            self.limits = limits
        }
    }

    private let setup: Mutex<Setup>
    private let time: any TimeSource
    private let log: Log
    private let observer: (any SMSObserver)?
    private let breakers: Mutex<[String: CircuitBreaker]>
    private let affinity = Mutex(GatewayAffinity())

    public init(_ setup: Setup, time: any TimeSource, log: Log, observer: (any SMSObserver)? = nil) {
        self.setup = Mutex(setup)
        self.time = time
        self.log = log
        self.observer = observer
        breakers = Mutex(setup.gateways.mapValues { _ in CircuitBreaker() })
    }

    /// Switches to another setup from the next message on. Gateways that remain keep the state of
    /// their circuit breakers, and the affinities of messages are kept. A replaced gateway is
    /// released when its last message has ended.
    public func adopt(_ next: Setup) {
        setup.withLock { setup in
            breakers.withLock { breakers in
                breakers = Dictionary(
                    uniqueKeysWithValues: next.gateways.map { name, gateway in
                        (name, setup.gateways[name] === gateway ? breakers[name] ?? CircuitBreaker() : CircuitBreaker())
                    })
            }
            setup = next
        }
    }

    /// Sends a message. Must be called on a loop.
    ///
    /// - Parameter left: how long the message is still of use.
    public func send(_ message: SMSMessage, left: Duration) async -> SMSReport {
        let end = time.instant() + min(left, Self.timeout)
        let setup = setup.withLock { $0 }
        var routes = setup.routing.gateways(for: message.to)
        let bound = affinity.withLock { $0.gateway(of: message.id, at: time.instant()) }
        if let bound { routes.removeAll { $0.gateway != bound } }
        var tries: [SMSReport.Attempt] = []
        for route in routes {
            guard let gateway = setup.gateways[route.gateway], admit(route.gateway) else { continue }
            let limit = min(end - time.instant(), setup.limits[route.gateway] ?? .seconds(10))
            guard limit >= Self.shortest else {
                // The circuit breaker admitted the message, but the gateway is not tried.
                breakers.withLock { $0[route.gateway]?.abandon(at: time.instant()) }
                break
            }
            let start = time.instant()
            let outcome = await gateway.send(message, within: limit)
            record(outcome, of: gateway, after: time.instant() - start)
            tries.append(.init(gateway: route.gateway, outcome: outcome))
            switch outcome {
            case .accepted:
                let cost = route.cost(of: message.size.parts, to: message.to)
                observer?.sent(gateway: route.gateway, parts: message.size.parts, cost: cost)
                return report(.accepted(by: route.gateway), message, tries, cost: cost)
            case .refused(let reason):
                let reason = "\(route.gateway): \(reason)"
                return report(.unregistered(since: nil, reason: reason), message, tries)
            case .ambiguous(let reason):
                affinity.withLock { $0.bind(message.id, to: route.gateway, at: time.instant()) }
                return report(.ambiguous("\(route.gateway): \(reason)"), message, tries)
            case .unsuited, .busy, .full, .down, .fault: continue
            }
        }
        return report(bound.map { notAgain(tries, routes, by: $0) } ?? nothing(tries, routes), message, tries)
    }

    /// Returns the outcome of a message that a gateway may have accepted before and did not accept
    /// now.
    private func notAgain(
        _ attempts: [SMSReport.Attempt], _ routes: [SMSRouting.Route], by bound: String
    ) -> DeliveryOutcome {
        let reason = "\(bound): no answer before, and now: \(attempts.last?.outcome.reason ?? "circuit breaker open")"
        switch attempts.last?.outcome {
        // Only the earlier attempt reached the gateway; the next one may follow soon.
        case nil where !routes.isEmpty, .busy, .full, .down:
            let now = time.instant()
            return .retry(after: breakers.withLock { $0[bound]?.wait(at: now) }, reason: reason)
        default: return .ambiguous(reason)
        }
    }

    /// Counts a message as accepted when its outcome stays ambiguous and no further attempt
    /// follows. Returns nil if no route takes its number.
    public func assumeSent(_ message: SMSMessage) -> SMSReport? {
        let routes = setup.withLock { $0 }.routing.gateways(for: message.to)
        // The affinity is known unless the relay restarted since.
        let bound = affinity.withLock { $0.gateway(of: message.id, at: time.instant()) }
        guard let route = routes.first(where: { $0.gateway == bound }) ?? routes.first else { return nil }
        let cost = route.cost(of: message.size.parts, to: message.to)
        observer?.sent(gateway: route.gateway, parts: message.size.parts, cost: cost)
        return SMSReport(
            outcome: .accepted(by: route.gateway), gateway: route.gateway, attempts: [], parts: message.size.parts,
            cost: cost)
    }

    /// Returns the outcome when no gateway accepted the message.
    private func nothing(_ attempts: [SMSReport.Attempt], _ routes: [SMSRouting.Route]) -> DeliveryOutcome {
        guard !routes.isEmpty else {
            return .misconfigured(.message, reason: "no gateway accepts numbers of that country")
        }
        let now = time.instant()
        let waits = breakers.withLock { breakers in routes.compactMap { breakers[$0.gateway]?.wait(at: now) } }
        var reasons = attempts.map { "\($0.gateway): \($0.outcome.reason ?? "")" }
        reasons += routes.filter { route in !attempts.contains { $0.gateway == route.gateway } }
            .map { "\($0.gateway): circuit breaker open" }
        let reason = reasons.joined(separator: "; ")
        let isHopeless = attempts.count == routes.count && attempts.allSatisfy { $0.outcome.isLasting }
        if isHopeless { return .misconfigured(.message, reason: reason) }
        return .retry(after: waits.count == routes.count ? waits.min() : nil, reason: reason)
    }

    private func report(
        _ outcome: DeliveryOutcome, _ message: SMSMessage, _ attempts: [SMSReport.Attempt], cost: Int64 = 0
    ) -> SMSReport {
        SMSReport(
            outcome: outcome, gateway: attempts.last?.gateway, attempts: attempts, parts: message.size.parts, cost: cost
        )
    }

    // MARK: Health

    private func admit(_ gateway: String) -> Bool {
        let now = time.instant()
        return breakers.withLock { $0[gateway]?.admit(at: now) ?? false }
    }

    private func record(_ outcome: GatewayOutcome, of asked: any SMSGateway, after duration: Duration) {
        let gateway = asked.name
        observer?.tried(gateway: gateway, outcome.word, after: duration)
        let now = time.instant()
        let isStill = setup.withLock { $0.gateways[gateway] === asked }
        let (before, after) = breakers.withLock { breakers -> (Bool, Bool) in
            // The outcome says nothing about a gateway that replaced this one.
            guard isStill, var breaker = breakers[gateway] else { return (false, false) }
            let before = breaker.state
            breaker.record(outcome, at: now)
            breakers[gateway] = breaker
            if case .closed = before { return (false, breaker.isOpen) }
            return (true, breaker.isOpen)
        }
        if let reason = outcome.reason {
            log.notice(
                "sms.gateway.failed", [.gateway: gateway, .outcome: outcome.word.rawValue, .reason: reason])
        }
        guard before != after else { return }
        if after {
            log.error("sms.gateway.paused", [.gateway: gateway, .reason: outcome.reason ?? ""])
        } else {
            log.notice("sms.gateway.back", [.gateway: gateway])
        }
    }

    /// The gateways whose circuit is open now. A gateway whose pause is over is excluded: only a
    /// message can find out whether it works, and callers that see a fault send none.
    public var openCircuits: [String] {
        let now = time.instant()
        return breakers.withLock { breakers in breakers.filter { $0.value.wait(at: now) != nil }.keys.sorted() }
    }

    /// The faults of all gateways; nil while some gateway accepts messages, as far as is known.
    public var fault: String? {
        let alone = Set(openCircuits)
        let gateways = setup.withLock { $0.gateways }
        let troubled = gateways.values.filter { alone.contains($0.name) || $0.fault != nil }
        guard troubled.count == gateways.count else { return nil }
        return troubled.sorted { $0.name < $1.name }
            .map { "\($0.name): \($0.fault ?? "fails")" }.joined(separator: "; ")
    }

    public func close() async {
        for gateway in setup.withLock({ $0.gateways }).values { await gateway.close() }
    }
}

extension GatewayOutcome {
    /// Whether the next attempt would have the same outcome.
    var isLasting: Bool {
        switch self {
        case .unsuited, .fault, .refused: true
        case .accepted, .busy, .full, .down, .ambiguous: false
        }
    }
}

extension CircuitBreaker {
    /// Records the outcome of one message, if it says something about the gateway.
    mutating func record(_ outcome: GatewayOutcome, at now: Instant) {
        switch outcome {
        case .accepted, .refused, .unsuited: succeed()
        case .fault: fail(forCertain: true, at: now)
        case .busy(let pause, _): fail(asked: pause, at: now)
        case .down, .ambiguous: fail(at: now)
        // It says nothing about the gateway.
        case .full: abandon(at: now)
        }
    }
}

/// The gateways that may have accepted a message, by message id, kept for as long as messages are
/// retried.
private struct GatewayAffinity {
    private static let kept = Duration.seconds(1800)
    private static let most = 10_000
    private var gateways: [String: (gateway: String, since: Instant)] = [:]

    func gateway(of message: String, at now: Instant) -> String? {
        guard let bond = gateways[message], now - bond.since < Self.kept else { return nil }
        return bond.gateway
    }

    mutating func bind(_ message: String, to gateway: String, at now: Instant) {
        if gateways.count >= Self.most { gateways = gateways.filter { now - $0.value.since < Self.kept } }
        // This many entries mean an outage of hours: the oldest one is dropped.
        if gateways.count >= Self.most, let oldest = gateways.min(by: { $0.value.since < $1.value.since }) {
            gateways[oldest.key] = nil
        }
        gateways[message] = (gateway, now)
    }
}
