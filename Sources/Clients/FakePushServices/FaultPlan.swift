import TLS

/// The faults for all requests, whatever their device token.
///
/// Invariant: the plan is deterministic. The same requests in the same order get the same faults.
/// Tested in `FaultPlanTests.swift`.
public struct FaultPlan: Sendable {
    /// A rule that gives one in every `requests` requests this answer.
    public struct Rule: Sendable {
        public let requests: Int
        public let answer: ScriptedAnswer

        public static func every(_ requests: Int, _ answer: ScriptedAnswer) -> Rule {
            Rule(requests: max(1, requests), answer: answer)
        }
    }

    /// The delay before a push is processed, whatever its answer.
    public var latency: Duration
    /// The rules. Each counts all valid requests without a script of their token.
    ///
    /// If two rules are due for the same request, the first rule applies, and the other one applies
    /// to the next request. Each rule thus applies as often as it states.
    public var rules: [Rule]
    /// The stream limits of each connection; nil for the fixed limit in `ServerLimits`.
    public var streams: StreamLimits?
    /// The numbers of half-open connections: open ones freeze now, later ones after their
    /// handshake.
    public var frozen: Set<Int>

    public init(
        latency: Duration = .zero, rules: [Rule] = [], streams: StreamLimits? = nil, frozen: Set<Int> = []
    ) {
        self.latency = latency
        self.rules = rules
        self.streams = streams
        self.frozen = frozen
    }
}

/// The counters of the rules of one fault plan.
struct RuleCounts {
    private let rules: [FaultPlan.Rule]
    private var counts: [(seen: Int, due: Int)]

    init(_ rules: [FaultPlan.Rule] = []) {
        self.rules = rules
        counts = rules.map { _ in (0, 0) }
    }

    /// Returns the answer for the next request; nil if no rule is due.
    mutating func next() -> ScriptedAnswer? {
        var chosen: Int?
        for index in rules.indices {
            counts[index].seen += 1
            if counts[index].seen == rules[index].requests {
                counts[index].seen = 0
                counts[index].due += 1
            }
            if chosen == nil, counts[index].due > 0 { chosen = index }
        }
        guard let chosen else { return nil }
        counts[chosen].due -= 1
        return rules[chosen].answer
    }
}

/// The changes of SETTINGS_MAX_CONCURRENT_STREAMS during the life of one connection.
public struct StreamLimits: Sendable {
    /// A phase with one limit. It ends after `requests` or `duration`, whichever comes first;
    /// without both it never ends. A phase with the limit 0 can end only by `duration`, since no
    /// request arrives.
    public struct Phase: Sendable {
        /// The limit; nil for no limit. The first SETTINGS frame then omits it; a later one sends
        /// the highest possible number.
        public let limit: UInt32?
        public let requests: Int?
        public let duration: Duration?

        public init(_ limit: UInt32?, requests: Int? = nil, duration: Duration? = nil) {
            self.limit = limit
            self.requests = requests
            // Phases without a length would follow each other in an endless loop.
            self.duration = duration.map { max($0, .milliseconds(1)) }
        }
    }

    /// The limit until the first request that proves the provider's identity, as Apple does with
    /// tokens; nil if the phases begin at once.
    public var unproved: UInt32?
    /// The phases, which start again after the last one. If the list is empty, the limit does not
    /// change.
    public var steps: [Phase]

    public init(unproved: UInt32? = nil, steps: [Phase]) {
        self.unproved = unproved
        self.steps = steps
    }

    /// A limit of 1 until the first valid provider token or certificate, then `limit`.
    public static func afterProof(_ limit: UInt32 = 1000) -> StreamLimits {
        StreamLimits(unproved: 1, steps: [Phase(limit)])
    }

    /// Cycles through the limits, with a change after every `requests` requests on a connection.
    public static func changing(_ limits: [UInt32?], every requests: Int) -> StreamLimits {
        StreamLimits(steps: limits.map { Phase($0, requests: requests) })
    }
}

/// The behavior of the service towards a new connection.
public enum ConnectionBehavior: Sendable {
    case serve
    /// Accepts the TCP connection, and never answers the TLS handshake.
    case hang
    /// Resets the connection at once.
    case cut
    /// Uses another TLS context: another certificate, or other authorities for client certificates.
    /// `FakeTeam.tls(_:)` makes contexts with faults.
    case tls(TLSServerContext)
    /// Sends GOAWAY before the SETTINGS frame.
    case goAway
    /// Freezes the connection after the handshake, so that it is half-open from the beginning.
    case freeze
}
