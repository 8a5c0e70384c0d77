import World

/// The cascade of one challenge: the ordered factors that it tries until one succeeds. It decides
/// which factor is first, which one follows an unsuccessful step, and which one a website may start
/// itself.
///
/// The cascade is a pure value. The caller reads the steps and the user's factors before, and the
/// SQL script checks on writing that they still hold.
///
/// Invariant: each factor starts by itself at most once in a challenge. Push and pull count as the
/// same factor. Recovery and temporary codes are accepted at any time, so they never start. While a
/// step is `seen`, so that a phone shows the challenge, nothing else starts.
///
/// A website's own starts are limited: `mostSendings` pushes and messages, `mostSteps` steps, and
/// `pause` between two sendings of a factor. Without these limits a website could flood a user with
/// messages.
///
/// Tests: `CascadeTests` in DomainTests; with the store in RelayTests `CascadeTests`, `StepTests`
/// and `EarlyFactorTests`.
public struct Cascade: Equatable, Sendable {
    /// The factors with which a user can answer now.
    public struct AvailableFactors: Equatable, Sendable {
        public enum Phone: Sendable {
            /// The phone is not pushed to; it finds challenges by polling `/pending`.
            case asking
            case pushable
        }

        /// The best phone of the user; nil if the user has none.
        public var phone: Phone?
        /// The active code factors; a factor whose codes are sent counts only if a courier exists
        /// for it.
        public var codes: Set<Factor>

        public init(phone: Phone?, codes: Set<Factor>) {
            self.phone = phone
            self.codes = codes
        }

        public func has(_ factor: Factor) -> Bool { factor.isCode ? codes.contains(factor) : phone != nil }
    }

    /// A step of the challenge: a factor that was started, with its state.
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

    /// The permitted factors in order, from `Factor.choices`.
    public let factors: [Factor]

    public init(factors: [Factor]) { self.factors = factors }

    /// Returns the factor that starts the challenge; nil if the user has none of them.
    public func first(_ means: AvailableFactors) -> Factor? { next(after: [], means) }

    /// Returns the factor that starts by itself now, or nil. Recovery and temporary codes never
    /// start, since they are accepted at any time. While a phone shows the challenge, nothing
    /// starts, so that the user is not interrupted.
    public func next(after tried: [CascadeStep], _ means: AvailableFactors) -> Factor? {
        guard !tried.contains(where: { $0.state == .seen }) else { return nil }
        let done = tried.map { Self.choice($0.factor) }
        return factors.first { $0.beginsByItself && !done.contains($0) && means.has($0) }
            .map { begin($0, means) }
    }

    /// Returns whether a user with these factors can answer at all.
    public func canAnswer(_ means: AvailableFactors) -> Bool { factors.contains { means.has($0) } }

    /// Returns pull instead of push if the phone cannot be pushed to.
    private func begin(_ factor: Factor, _ means: AvailableFactors) -> Factor {
        factor == .push && means.phone == .asking ? .pull : factor
    }

    private static func choice(_ factor: Factor) -> Factor { factor == .pull ? .push : factor }
}

/// The factors that a website starts itself.
extension Cascade {
    /// The maximum number of pushes and messages in one challenge.
    public static let mostSendings = 5
    /// The maximum number of steps in one challenge.
    public static let mostSteps = 20
    /// The minimum pause between two sendings of one factor.
    public static let pause = Duration.seconds(20)

    public enum Start: Equatable, Sendable {
        case begin(Factor)
        /// The factor is under way and nothing needs to be sent.
        case underWay
        case forbidden
        /// The user does not have this factor, or no courier exists for it.
        case unavailable
        /// A limit applies until that time; nil if the challenge has reached its maximum.
        case limited(until: Timestamp?)
    }

    /// Decides whether the website may start the factor now, or have its code sent again.
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
            // A step far in the future comes from a wrong clock and is ignored.
            last.at <= now + Self.pause
        {
            return .limited(until: last.at + Self.pause)
        }
        return .begin(factor)
    }
}

/// The codes that the relay sends after a wrong one.
extension Cascade {
    /// Returns the factor whose code is sent after a wrong code, in the policy's order; nil if none
    /// can be sent now.
    public func resend(after tried: [CascadeStep], _ means: AvailableFactors, at now: Timestamp) -> Factor? {
        factors.first { $0.isSent && start($0, after: tried, means, at: now) == .begin($0) }
    }
}

extension StepState {
    /// Whether the step can still succeed.
    public var isUnderWay: Bool { self == .queued || self == .sent || self == .seen }
}

extension Policy {
    /// Returns the lowest assurance that a success by that factor can have.
    public func worth(of factor: Factor, asksNumber: Bool) -> Assurance {
        Assurance(factor: factor, numberAsked: asksNumber, uv: leastVerification)
    }

    /// Returns this policy for one challenge, with the factors that are wanted and have enough
    /// assurance, in the policy's order.
    ///
    /// - Parameter wanted: the factors that the website permits; nil permits all.
    public func narrowed(to wanted: [Factor]?, atLeast assurance: Assurance?, asksNumber: Bool) -> Policy {
        var policy = self
        policy.minAssurance = max(minAssurance, assurance ?? .low)
        policy.factors = factors.filter { factor in
            wanted?.contains(factor) != false && worth(of: factor, asksNumber: asksNumber) >= policy.minAssurance
        }
        return policy
    }

    /// Returns this policy with only the strongest factors that the user has, and recovery codes.
    /// It applies when a user approves a further factor, because the approval must not be weaker
    /// than the existing factors. A phone counts as strongest, with or without a number. If nothing
    /// would remain, the policy is unchanged, since a policy needs a factor.
    ///
    /// - Parameter takesOperator: whether a temporary code of the user may approve, too.
    public func strongest(of means: Cascade.AvailableFactors, takesOperator: Bool) -> Policy {
        let had = factors.filter { $0.beginsByItself && means.has($0) }
        let best = had.map { worth(of: $0, asksNumber: true) }.max()
        var policy = self
        policy.factors = factors.filter { factor in
            switch factor {
            case .recovery: true
            case .operator: takesOperator && means.has(.operator)
            default: had.contains(factor) && worth(of: factor, asksNumber: true) == best
            }
        }
        return policy.factors.isEmpty ? self : policy
    }

    /// Returns the time at which the next factor starts by itself; nil if it does not.
    public func deadline(of factor: Factor, from now: Timestamp) -> Timestamp? {
        (factor.isCode ? codeDeadline : pushDeadline).map { now + .seconds($0) }
    }
}
