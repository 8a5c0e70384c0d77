import TLS

/// What goes wrong for everybody, whatever their token: always the same for the same requests in the same order, and
/// never by chance.
public struct FaultPlan: Sendable {
    /// One in so many requests gets this.
    public struct Rule: Sendable {
        public let requests: Int
        public let answer: ScriptedAnswer

        public static func every(_ requests: Int, _ answer: ScriptedAnswer) -> Rule {
            Rule(requests: max(1, requests), answer: answer)
        }
    }

    /// Before anything is done with a push, whatever it gets then.
    public var latency: Duration
    /// Each counts all right requests that have no script of their own. Where two are due at once the first one is given, and
    /// the other to the next request: so that none is given less often than it says.
    public var rules: [Rule]
    /// Of each connection; nil: what `ServerLimits` say, from the beginning to the end.
    public var streams: StreamLimits?
    /// Connections that are half-open, by their number: those that stand from now on, others when they come.
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

/// Counts for the rules of one mischief.
struct RuleCounts {
    private let rules: [FaultPlan.Rule]
    private var counts: [(seen: Int, due: Int)]

    init(_ rules: [FaultPlan.Rule] = []) {
        self.rules = rules
        counts = rules.map { _ in (0, 0) }
    }

    /// What the next request gets, if any rule is due.
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

/// SETTINGS_MAX_CONCURRENT_STREAMS of one connection in the course of its life.
public struct StreamLimits: Sendable {
    /// A step ends when the first of the two has come, and never without either. A limit of 0 can only be ended by time.
    public struct Phase: Sendable {
        /// Nil: none. It can be left unsaid only in the first SETTINGS; later it is the highest number there is.
        public let limit: UInt32?
        public let requests: Int?
        public let duration: Duration?

        public init(_ limit: UInt32?, requests: Int? = nil, duration: Duration? = nil) {
            self.limit = limit
            self.requests = requests
            // Steps without any length would follow one another without end.
            self.duration = duration.map { max($0, .milliseconds(1)) }
        }
    }

    /// Until the connection's first request that proves who sends it, as Apple has it with tokens; nil: the steps begin at
    /// once.
    public var unproved: UInt32?
    /// Again from the first after the last. None: the limit stays as it is.
    public var steps: [Phase]

    public init(unproved: UInt32? = nil, steps: [Phase]) {
        self.unproved = unproved
        self.steps = steps
    }

    /// One until the first valid answer, then that many.
    public static func afterProof(_ limit: UInt32 = 1000) -> StreamLimits {
        StreamLimits(unproved: 1, steps: [Phase(limit)])
    }

    /// From one to the next, over and over, after so many requests on a connection.
    public static func changing(_ limits: [UInt32?], every requests: Int) -> StreamLimits {
        StreamLimits(steps: limits.map { Phase($0, requests: requests) })
    }
}

/// How a connection is met.
public enum ConnectionBehavior: Sendable {
    case serve
    /// The handshake hangs: the socket stands, and that is all.
    case hang
    /// Reset as soon as it is there.
    case cut
    /// With another certificate, or other authorities for the client's: `FakeTeam.tls(_:)` makes some that are wrong.
    case tls(TLSServerContext)
    /// A GOAWAY ahead of the SETTINGS.
    case goAway
    /// Frozen when the handshake is done: half-open from the beginning.
    case freeze
}
