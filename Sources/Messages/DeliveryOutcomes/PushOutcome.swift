import World

/// What the push service said, in the words that all push services share.
public enum PushOutcome: Sendable, Equatable {
    /// Taken over; whether the phone got it is another matter.
    case accepted
    /// The token is of no use any more, if it was not registered anew since.
    case tokenDead(since: Timestamp?, reason: String)
    case retryAfter(Duration, reason: String)
    /// Our key or certificate is at fault, for every phone alike.
    case credentialFault(String)
    /// We sent what we should not have sent.
    case badRequest(String)
    /// A service that was chosen by whoever is to be pushed does not take it. Nothing of ours is at fault, and nobody else
    /// concerned.
    case declined(String)
    /// It may have been taken over or not.
    case ambiguous(String)
}
