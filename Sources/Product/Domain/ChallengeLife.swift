import World

/// Why a challenge did not succeed; the words of the wire.
public enum Reason: String, Sendable, CaseIterable {
    case denied, fraud, expired, cancelled, superseded, locked, frozen, undeliverable
    case wrongNumber = "wrong_number"
}

public enum Decision: String, Sendable, CaseIterable {
    case approve, deny, fraud
}

/// The life of a challenge: asked → sent → one of the ends. Ends never change.
///
/// A pure value. The SQL scripts guard the same rules (`decided_at IS NULL`, `expires_at > now`), because between
/// reading and writing somebody else may have decided.
public struct ChallengeLife: Equatable, Sendable {
    public enum State: String, Sendable, CaseIterable {
        case asked, sent
        case answered, expired, cancelled, failed

        public var isEnd: Bool { self != .asked && self != .sent }
    }

    public enum Event: Equatable, Sendable {
        /// The push service took the message for at least one phone.
        case delivered
        /// A valid answer. `numberMatches` is false when a number was asked and another one came.
        case answer(Decision, numberMatches: Bool)
        case cancel
        case supersede
        case expire
        /// No factor is left that could reach the user.
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
        case .cancel: return become(.cancelled, reason: .cancelled)
        case .supersede: return become(.cancelled, reason: .superseded)
        case .giveUp(let reason): return become(.failed, reason: reason)
        case .expire: return become(.expired, reason: .expired)
        }
    }

    /// What is true at `now`, also when nobody has written the expiry down yet.
    public func seen(at now: Timestamp) -> ChallengeLife {
        (try? after(.expire, at: now)) ?? self
    }

    /// What the website is told in `login`.
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
