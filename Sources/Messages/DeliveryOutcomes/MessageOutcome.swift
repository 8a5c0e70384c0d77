/// The outcome of one attempt to deliver a mail or a text message, common to all couriers. Reasons
/// are for people; they are printable and contain no code.
public enum MessageOutcome: Sendable, Equatable {
    /// Another service has accepted the message: the mail server, or the gateway of that name.
    case accepted(by: String?)
    /// The address will never accept it.
    case refused(String)
    /// A later attempt may succeed. Without a duration the sender chooses the pause.
    case retryAfter(Duration?, String)
    /// The message cannot be sent: no gateway accepts it, or a setting is wrong.
    case undeliverable(String)
    /// The service may have accepted it. Another attempt under the same id does no harm.
    case ambiguous(String)
}
