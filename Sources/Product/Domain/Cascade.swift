import World

/// In which order a user is asked: what comes first, what follows when nothing came of it, and what a website may begin
/// by hand. Pure: what has been tried and what the user has is read before, and holds if it still does when it is written.
public struct Cascade: Equatable, Sendable {
    /// What a user could answer by now.
    public struct AvailableFactors: Equatable, Sendable {
        public enum Phone: Sendable {
            /// It can only be waited for: it asks by itself, or nothing is pushed to it any more.
            case asking
            case pushable
        }

        /// The best of the user's; nil without one.
        public var phone: Phone?
        /// Those that count and, where they are sent, that there is a courier for.
        public var codes: Set<Factor>

        public init(phone: Phone?, codes: Set<Factor>) {
            self.phone = phone
            self.codes = codes
        }

        public func has(_ factor: Factor) -> Bool { factor.isCode ? codes.contains(factor) : phone != nil }
    }

    /// A step of the challenge.
    public struct CascadeStep: Equatable, Sendable {
        public let factor: Factor
        public let state: StepState
        public let at: Timestamp

        public init(factor: Factor, state: StepState, at: Timestamp) {
            self.factor = factor
            self.state = state
            self.at = at
        }
    }

    /// What may be answered by, in order: of `Factor.choices`.
    public let factors: [Factor]

    public init(factors: [Factor]) { self.factors = factors }

    /// What the challenge begins with.
    public func first(_ means: AvailableFactors) -> Factor? { next(after: [], means) }

    /// What begins by itself now. A recovery code never does: it is taken all the time, and nobody is sent to fetch it.
    /// Whoever has looked at the push has it in hand, and is not disturbed.
    public func next(after tried: [CascadeStep], _ means: AvailableFactors) -> Factor? {
        guard tried.last?.state != .seen else { return nil }
        let done = tried.map { Self.choice($0.factor) }
        return factors.first { $0 != .recovery && !done.contains($0) && means.has($0) }
            .map { begin($0, means) }
    }

    /// Whether a user who has these can answer at all.
    public func canAnswer(_ means: AvailableFactors) -> Bool { factors.contains { means.has($0) } }

    /// A phone that nothing can be pushed to is waited for.
    private func begin(_ factor: Factor, _ means: AvailableFactors) -> Factor {
        factor == .push && means.phone == .asking ? .pull : factor
    }

    private static func choice(_ factor: Factor) -> Factor { factor == .pull ? .push : factor }
}

/// What a website begins by hand.
extension Cascade {
    /// Pushes and messages of one challenge.
    public static let mostSendings = 5
    /// Steps of one challenge.
    public static let mostSteps = 20
    /// Between two sendings of one factor.
    public static let pause = Duration.seconds(20)

    public enum Start: Equatable, Sendable {
        case begin(Factor)
        /// It needs nothing sent and is under way: there is nothing to do.
        case underWay
        case forbidden
        /// The user has none, or nothing carries it.
        case unavailable
        /// Not before; nil where this challenge has had all that it may have.
        case limited(until: Timestamp?)
    }

    /// The factor now, or its code again.
    public func start(_ wanted: Factor, after tried: [CascadeStep], _ means: AvailableFactors, at now: Timestamp)
        -> Start
    {
        let choice = Self.choice(wanted)
        guard factors.contains(choice) else { return .forbidden }
        guard means.has(choice) else { return .unavailable }
        let factor = begin(choice, means)
        let isWaitedFor = factor == .pull || factor.isCode && !factor.isSent
        let isUnderWay = tried.last.map { Self.choice($0.factor) == choice && $0.state.isUnderWay } ?? false
        if isWaitedFor, isUnderWay { return .underWay }
        guard tried.count < Self.mostSteps else { return .limited(until: nil) }
        guard !isWaitedFor else { return .begin(factor) }
        let sendings = tried.filter { $0.factor == .push || $0.factor.isSent }
        guard sendings.count < Self.mostSendings else { return .limited(until: nil) }
        if let last = sendings.last(where: { $0.factor == factor }), now < last.at + Self.pause,
            // Of a clock that was wrong nothing follows for long.
            last.at <= now + Self.pause
        {
            return .limited(until: last.at + Self.pause)
        }
        return .begin(factor)
    }
}

extension StepState {
    /// It may come to something yet.
    public var isUnderWay: Bool { self == .queued || self == .sent || self == .seen }
}

extension Policy {
    /// How a success by that factor would count at the least.
    public func worth(of factor: Factor, asksNumber: Bool) -> Assurance {
        Assurance(factor: factor, numberAsked: asksNumber, uv: minUV)
    }

    /// This policy for one challenge: of its factors those that are wanted and are worth enough, in its own order.
    ///
    /// - Parameter wanted: nil where any will do.
    public func narrowed(to wanted: [Factor]?, atLeast assurance: Assurance?, asksNumber: Bool) -> Policy {
        var policy = self
        policy.minAssurance = max(minAssurance, assurance ?? .low)
        policy.factors = factors.filter { factor in
            wanted?.contains(factor) != false && worth(of: factor, asksNumber: asksNumber) >= policy.minAssurance
        }
        return policy
    }

    /// Of the factors those that are worth most among what the user has, and recovery codes: what approves of a further
    /// factor must not be weaker than what there is. A phone counts most, whatever it is asked. Where there is nothing,
    /// nothing is left out: a policy takes something.
    public func strongest(of means: Cascade.AvailableFactors) -> Policy {
        let had = factors.filter { $0 != .recovery && means.has($0) }
        guard !had.isEmpty || factors.contains(.recovery) else { return self }
        let best = had.map { worth(of: $0, asksNumber: true) }.max()
        var policy = self
        policy.factors = factors.filter { factor in
            factor == .recovery || had.contains(factor) && worth(of: factor, asksNumber: true) == best
        }
        return policy
    }

    /// When what follows that factor begins by itself; nil where it does not.
    public func deadline(of factor: Factor, from now: Timestamp) -> Timestamp? {
        (factor.isCode ? codeDeadline : pushDeadline).map { now + .seconds($0) }
    }
}
