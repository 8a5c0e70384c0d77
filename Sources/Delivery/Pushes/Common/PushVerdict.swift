import DeliveryOutcomes
import World

/// The consequences of an answer: for the push, for the connection and for the credential.
struct PushVerdict: Equatable {
    enum Next: Equatable {
        case settle(DeliveryOutcome)
        /// Send it once more, at once; on another connection if this one is to be replaced.
        case repeatElsewhere
    }

    enum Connection: Equatable {
        case keep
        /// Use another connection for new requests; this one still answers what was sent.
        case replace
    }

    enum Credential: Equatable {
        case keep
        /// Replace the token that was sent.
        case renew
        /// Make no new provider token for a while, and return to the previous one.
        case holdRenewal
        /// Send nothing with the credential for a while, and log an error for the operator.
        case distrust
    }

    var push: Next
    var connection: Connection = .keep
    var credential: Credential = .keep
    /// Whether an operator has to look at the answer.
    var alarm = false
}

/// The state of the request that a verdict needs besides the answer.
struct PushRequestState {
    /// The time at which the push was sent. A token that was registered later is not the refused
    /// one.
    var sentAt: Timestamp
    /// The kinds of answer that have already caused a repetition of this push: each may do so once.
    var repeatedFor: Set<AnswerMeaning> = []
    /// Whether the provider token that was sent is old enough to be replaced.
    var mayRenew = true
    /// Whether many consecutive device tokens were bad, so that the environment or the topic must
    /// be wrong.
    var suspectsEnvironment = false
    /// The number of earlier attempts with this push.
    var attempts = 0
    /// A random part of the growing pause, from 0 to 1, so that pushes that failed together are not
    /// repeated together.
    var jitter = 0.0
}

extension PushAnswer {
    func verdict(_ state: PushRequestState) -> PushVerdict {
        switch meaning {
        case .accepted:
            PushVerdict(push: .settle(.accepted(by: nil)))
        case .badToken where state.suspectsEnvironment, .foreignToken where state.suspectsEnvironment:
            PushVerdict(push: .settle(.misconfigured(.message, reason: text)), alarm: true)
        case .badToken:
            PushVerdict(push: .settle(.unregistered(since: state.sentAt, reason: text)))
        case .goneToken:
            // The token was registered before it was sent, whatever Apple's clock says.
            PushVerdict(push: .settle(.unregistered(since: since(state), reason: text)))
        case .foreignToken:
            // The token is useless until the phone registers again. The alarm is due because a
            // token of another app should not be in the store.
            PushVerdict(push: .settle(.unregistered(since: state.sentAt, reason: text)), alarm: true)
        case .ourMistake:
            PushVerdict(push: .settle(.misconfigured(.message, reason: text)), alarm: true)
        case .idleConnection, .serverTrouble:
            PushVerdict(push: mayRepeat(state) ? .repeatElsewhere : later(.seconds(5)), connection: .replace)
        case .foreignProject:
            PushVerdict(push: .settle(.misconfigured(.message, reason: text)), alarm: true)
        case .refusedCredential:
            PushVerdict(push: .settle(.misconfigured(.service, reason: text)), credential: .distrust, alarm: true)
        case .expiredCredential where state.mayRenew && mayRepeat(state):
            PushVerdict(push: .repeatElsewhere, connection: .replace, credential: .renew)
        case .expiredCredential:
            // The token is young and yet expired: one of the clocks is wrong, and another token
            // would be wrong too.
            PushVerdict(
                push: .settle(.misconfigured(.service, reason: text + ": check the clock")), connection: .replace,
                credential: .distrust, alarm: true)
        case .expiredAccessToken where mayRepeat(state):
            PushVerdict(push: .repeatElsewhere, credential: .renew)
        case .expiredAccessToken:
            PushVerdict(push: .settle(.misconfigured(.service, reason: text)), credential: .distrust, alarm: true)
        case .unrelatedKey where mayRepeat(state):
            PushVerdict(push: .repeatElsewhere, connection: .replace)
        case .unrelatedKey:
            PushVerdict(
                push: .settle(.misconfigured(.service, reason: text)), connection: .replace, credential: .distrust,
                alarm: true)
        case .busyDevice:
            PushVerdict(push: later(.seconds(20)))
        case .tooManyRenewals:
            PushVerdict(push: later(.seconds(30)), credential: .holdRenewal, alarm: true)
        case .exceededQuota:
            PushVerdict(push: later(.seconds(60)))
        case .unavailable:
            PushVerdict(push: later(growing(state)))
        }
    }

    private func since(_ state: PushRequestState) -> Timestamp {
        guard let timestamp, timestamp.milliseconds >= 0 else { return state.sentAt }
        return min(timestamp, state.sentAt)
    }

    private func mayRepeat(_ state: PushRequestState) -> Bool { !state.repeatedFor.contains(meaning) }

    /// The pause of a service that asks for at least 10 s and then twice as long each time.
    private func growing(_ state: PushRequestState) -> Duration {
        let base = Duration.seconds(10) * (1 << min(max(state.attempts, 0), 5))
        return base + base / 2 * state.jitter
    }

    /// Returns an outcome with the pause from the answer, between 1 and 600 seconds, or with the
    /// usual pause.
    private func later(_ usual: Duration) -> PushVerdict.Next {
        let pause = retryAfter.map { Duration.seconds(min(max($0, 1), 600)) } ?? usual
        // A service in trouble serves nobody.
        let isOutage = meaning == .serverTrouble || meaning == .unavailable
        return .settle(isOutage ? .unavailable(after: pause, reason: text) : .retry(after: pause, reason: text))
    }
}
