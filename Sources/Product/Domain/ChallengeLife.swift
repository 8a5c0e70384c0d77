import World

/// The reason why a challenge did not succeed, with the values of the wire format.
public enum Reason: String, Sendable, CaseIterable {
    case denied, fraud, expired, cancelled, superseded, locked, frozen, disabled, undeliverable
    /// The phone that approved is far from the login, and the policy refuses that.
    case place
    case wrongNumber = "wrong_number"
    case wrongCode = "wrong_code"
    /// The expiry of the user has passed.
    case userExpired = "user_expired"
}

/// The choice of the user. `fraud` denies the challenge and freezes the user.
public enum Decision: String, Sendable, CaseIterable {
    case approve, deny, fraud
}

/// The state machine of a challenge: asked → sent → one of the ends answered, expired, cancelled or
/// failed. A challenge may also end without having been sent.
///
/// Invariant: an end never changes. The first event that ends a challenge wins; every later one is
/// refused as `alreadyDecided`. From `expiresAt` on, only the event `expire` is accepted; before
/// that time it is refused as `tooEarly`.
///
/// This is a pure value, and another relay may decide the challenge between reading and writing.
/// The SQL scripts therefore guard the same rules (`decided_at IS NULL`, `expires_at > now`). If a
/// script omits a guard, two answers that race could both succeed.
///
/// Tests: `ChallengeLifeTests`; with the store in `ChallengeEndTests` and `DecisionTests`.
public struct ChallengeLife: Equatable, Sendable {
    public enum State: String, Sendable, CaseIterable {
        case asked, sent
        case answered, expired, cancelled, failed

        public var isEnd: Bool { self != .asked && self != .sent }
    }

    public enum Event: Equatable, Sendable {
        /// A push service accepted the push for at least one phone.
        case delivered
        /// A valid answer. `numberMatches` is false if a number was required and another one was
        /// entered.
        case answer(Decision, numberMatches: Bool)
        /// An approval of a phone that the policy refuses because of the phone's place.
        case refusePlace
        case cancel
        case supersede
        case expire
        /// No factor remains that could reach the user, or the policy permits no further code after
        /// a wrong one.
        case giveUp(Reason)
    }

    public enum Refusal: Error, Equatable {
        case alreadyDecided, expired, tooEarly
    }

    public let state: State
    public let decision: Decision?
    public let reason: Reason?
    public let expiresAt: Timestamp

    public init(expiresAt: Timestamp) {
        self.init(state: .asked, decision: nil, reason: nil, expiresAt: expiresAt)
    }

    public init(state: State, decision: Decision?, reason: Reason?, expiresAt: Timestamp) {
        self.state = state
        self.decision = decision
        self.reason = reason
        self.expiresAt = expiresAt
    }

    /// Returns the challenge after the event. Throws a `Refusal` if the challenge has ended, or if
    /// the event comes too early or too late.
    public func after(_ event: Event, at now: Timestamp) throws(Refusal) -> ChallengeLife {
        guard !state.isEnd else { throw .alreadyDecided }
        if case .expire = event {
            guard now >= expiresAt else { throw .tooEarly }
            return become(.expired, reason: .expired)
        }
        guard now < expiresAt else { throw .expired }
        switch event {
        case .delivered: return become(.sent)
        case .answer(_, numberMatches: false): return become(.failed, reason: .wrongNumber)
        case .answer(.approve, _): return become(.answered, decision: .approve)
        case .answer(.deny, _): return become(.answered, decision: .deny, reason: .denied)
        case .answer(.fraud, _): return become(.answered, decision: .fraud, reason: .fraud)
        case .refusePlace: return become(.failed, reason: .place)
        case .cancel: return become(.cancelled, reason: .cancelled)
        case .supersede: return become(.cancelled, reason: .superseded)
        case .giveUp(let reason): return become(.failed, reason: reason)
        case .expire: return become(.expired, reason: .expired)
        }
    }

    /// Returns the challenge as it is at `now`, even if its expiry is not yet stored.
    public func seen(at now: Timestamp) -> ChallengeLife {
        (try? after(.expire, at: now)) ?? self
    }

    /// The result that the website gets.
    public var result: Result {
        guard state.isEnd else { return .wait }
        return decision == .approve ? .success : .failure
    }

    public enum Result: String, Sendable {
        case success, failure, wait
    }

    private func become(_ state: State, decision: Decision? = nil, reason: Reason? = nil) -> ChallengeLife {
        ChallengeLife(state: state, decision: decision, reason: reason, expiresAt: expiresAt)
    }
}
