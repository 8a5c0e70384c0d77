/// What became of a mail or a text message, as all who carry messages say it. Reasons are for people, hold no code, and
/// are printable.
public enum MessageOutcome: Sendable, Equatable {
    /// Somebody else has taken it over: the mail server, or the gateway of that name.
    case accepted(by: String?)
    /// This address will never take it.
    case refused(String)
    /// Not now. Where it is not said when, the sender decides.
    case retryAfter(Duration?, String)
    /// There is no way to send it: no gateway takes it, or something is set wrongly here.
    case undeliverable(String)
    /// It may have been taken over, or not. Once more under the same id does no harm.
    case ambiguous(String)
}
