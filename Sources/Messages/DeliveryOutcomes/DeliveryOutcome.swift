import World

/// The outcome of one attempt to deliver a push, a mail or a text message, common to all couriers.
/// Reasons are for people; they are printable and contain no code.
public enum DeliveryOutcome: Sendable, Equatable {
    /// The extent of a wrong setting or request.
    public enum Scope: Sendable, Equatable {
        /// The service refuses the relay itself, and so every message, until an operator acts.
        case service
        /// Only this message cannot be sent.
        case message
    }

    /// Another service has accepted it: the push service, the mail server, or the gateway of that
    /// name. This does not show that the user received it.
    case accepted(by: String?)
    /// The address or device token is dead for good. A phone may have registered the token again
    /// after `since`; it is nil if the service gave no time.
    case unregistered(since: Timestamp?, reason: String)
    /// A later attempt may succeed. Without a duration the sender chooses the pause.
    case retry(after: Duration?, reason: String)
    /// As `retry`, and no other message gets through either: the service cannot be reached, or says
    /// that it is in trouble.
    case unavailable(after: Duration?, reason: String)
    /// The relay is at fault: a setting, its credential or the request is wrong.
    case misconfigured(Scope, reason: String)
    /// A push service that the user chose refused it. The relay is not at fault, and no other user
    /// is affected.
    case declined(String)
    /// The service may have accepted it. Another attempt under the same id does no harm.
    case ambiguous(String)

    /// The reason of the outcome; nil if there is nothing to explain.
    public var reason: String? {
        switch self {
        case .accepted: nil
        case .unregistered(_, let reason), .retry(_, let reason), .unavailable(_, let reason),
            .misconfigured(_, let reason), .declined(let reason), .ambiguous(let reason):
            reason
        }
    }
}
