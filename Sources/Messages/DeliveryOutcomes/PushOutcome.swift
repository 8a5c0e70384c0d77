import World

/// The outcome of one attempt to deliver a push, common to all push services.
public enum PushOutcome: Sendable, Equatable {
    /// The service accepted the push; this does not show that the phone received it.
    case accepted
    /// The device token is dead, unless the phone registered it again since.
    case tokenDead(since: Timestamp?, reason: String)
    case retryAfter(Duration, reason: String)
    /// The service refuses the relay's key or certificate, for all phones alike.
    case credentialFault(String)
    /// The relay sent an invalid request.
    case badRequest(String)
    /// A push service that the user chose refused the push. The relay is not at fault, and no other
    /// user is affected.
    case declined(String)
    /// The service may have accepted it.
    case ambiguous(String)
}
