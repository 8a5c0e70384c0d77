/// The outcome of one message at one gateway. Reasons are for operators. They consist of the
/// relay's own words and of numbers from the gateway, never of its texts, since these may repeat
/// the message.
public enum GatewayOutcome: Sendable, Equatable {
    /// The gateway has the message.
    case accepted
    /// The number will never accept it, from any gateway.
    case refused(String)
    /// This gateway does not accept this message; another one may.
    case unsuited(String)
    /// Not accepted: the gateway is overloaded or temporarily unable. The value is the pause that
    /// it asked for.
    case busy(Duration?, String)
    /// Not sent: this relay has as many messages under way at the gateway as it may.
    case full(String)
    /// Not accepted: the gateway was not reached.
    case down(String)
    /// Not accepted, and no other message will be: the configuration on one side is wrong.
    case fault(String)
    /// The gateway may have accepted it.
    case ambiguous(String)

    public enum Word: String, Sendable, CaseIterable {
        case accepted, refused, unsuited, busy, down, fault, ambiguous
    }

    public var word: Word {
        switch self {
        case .accepted: .accepted
        case .refused: .refused
        case .unsuited: .unsuited
        case .busy, .full: .busy
        case .down: .down
        case .fault: .fault
        case .ambiguous: .ambiguous
        }
    }

    public var reason: String? {
        switch self {
        case .accepted: nil
        case .refused(let reason), .unsuited(let reason), .busy(_, let reason), .full(let reason), .down(let reason),
            .fault(let reason),
            .ambiguous(let reason):
            reason
        }
    }
}
