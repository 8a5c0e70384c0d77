import DeliveryOutcomes
import World

/// What follows from an answer: for the push, for the connection it came on, and for our credential.
struct APNsVerdict: Equatable {
    enum Next: Equatable {
        case settle(PushOutcome)
        /// At once, once more, on another connection.
        case repeatElsewhere
    }

    enum Connection: Equatable {
        case keep
        /// Answers what it has been asked; new requests go to another.
        case replace
    }

    enum Credential: Equatable {
        case keep
        /// A new provider token in place of the one that was sent.
        case renew
        /// No new provider token for a while; back to the one before.
        case holdRenewal
        /// Nothing more is sent with it for a while, and the operator is told.
        case distrust
    }

    var push: Next
    var connection: Connection = .keep
    var credential: Credential = .keep
    /// Something that a person has to look at.
    var alarm = false
}

/// What the answer alone does not say.
struct APNsRequestState {
    /// When the push was sent: a token registered after that is not the one that was refused.
    var sentAt: Timestamp
    /// Answers that have already made us repeat this push: each does so once.
    var repeatedFor: Set<APNsAnswer.Meaning> = []
    /// Whether the provider token that was sent is old enough to be followed by another.
    var mayRenew = true
    /// Whether so many tokens were bad in a row that the environment or the topic, not the tokens, must be wrong.
    var doubtsEnvironment = false
}

extension APNsAnswer {
    func verdict(_ situation: APNsRequestState) -> APNsVerdict {
        switch meaning {
        case .accepted:
            APNsVerdict(push: .settle(.accepted))
        case .badToken where situation.doubtsEnvironment, .foreignToken where situation.doubtsEnvironment:
            APNsVerdict(push: .settle(.badRequest(text)), alarm: true)
        case .badToken:
            APNsVerdict(push: .settle(.tokenDead(since: situation.sentAt, reason: text)))
        case .goneToken:
            // What was sent had been registered by then, whatever their clock says.
            APNsVerdict(push: .settle(.tokenDead(since: since(situation), reason: text)))
        case .foreignToken:
            // Of no use until the phone has registered anew; but how does the token of another app come to us?
            APNsVerdict(push: .settle(.tokenDead(since: situation.sentAt, reason: text)), alarm: true)
        case .ourMistake:
            APNsVerdict(push: .settle(.badRequest(text)), alarm: true)
        case .idleConnection, .serverTrouble:
            APNsVerdict(push: mayRepeat(situation) ? .repeatElsewhere : later(.seconds(5)), connection: .replace)
        case .refusedCredential:
            APNsVerdict(push: .settle(.credentialFault(text)), credential: .distrust, alarm: true)
        case .expiredCredential where situation.mayRenew && mayRepeat(situation):
            APNsVerdict(push: .repeatElsewhere, connection: .replace, credential: .renew)
        case .expiredCredential:
            // Young and yet expired: our clock or theirs is wrong, and another token would be as wrong.
            APNsVerdict(
                push: .settle(.credentialFault(text + ", is the clock right?")), connection: .replace,
                credential: .distrust, alarm: true)
        case .unrelatedKey where mayRepeat(situation):
            APNsVerdict(push: .repeatElsewhere, connection: .replace)
        case .unrelatedKey:
            APNsVerdict(
                push: .settle(.credentialFault(text)), connection: .replace, credential: .distrust, alarm: true)
        case .busyDevice:
            APNsVerdict(push: later(.seconds(20)))
        case .tooManyRenewals:
            APNsVerdict(push: later(.seconds(30)), credential: .holdRenewal, alarm: true)
        }
    }

    private func since(_ situation: APNsRequestState) -> Timestamp {
        guard let timestamp, timestamp.milliseconds >= 0 else { return situation.sentAt }
        return min(timestamp, situation.sentAt)
    }

    private func mayRepeat(_ situation: APNsRequestState) -> Bool { !situation.repeatedFor.contains(meaning) }

    /// As the answer asks, within what a challenge can bear.
    private func later(_ usual: Duration) -> APNsVerdict.Next {
        let pause = retryAfter.map { Duration.seconds(min(max($0, 1), 600)) } ?? usual
        return .settle(.retryAfter(pause, reason: text))
    }
}
