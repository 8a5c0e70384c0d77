/// What became of a message at one gateway. Reasons are for operators; they are words of ours and numbers of the
/// gateway's, never its texts: these may repeat what was sent.
public enum GatewayOutcome: Sendable, Equatable {
    /// The gateway has it.
    case accepted
    /// This number will never take it, whoever brings it.
    case refused(String)
    /// This gateway does not take this message; another one may.
    case unsuited(String)
    /// Not taken: the gateway is overloaded, or says that it cannot now.
    case busy(Duration?, String)
    /// Not taken: the gateway was not reached.
    case down(String)
    /// Not taken, nor will be any other: something is set wrongly, here or there.
    case fault(String)
    /// It may have been taken.
    case ambiguous(String)

    public enum Word: String, Sendable, CaseIterable {
        case accepted, refused, unsuited, busy, down, fault, ambiguous
    }

    public var word: Word {
        switch self {
        case .accepted: .accepted
        case .refused: .refused
        case .unsuited: .unsuited
        case .busy: .busy
        case .down: .down
        case .fault: .fault
        case .ambiguous: .ambiguous
        }
    }

    public var reason: String? {
        switch self {
        case .accepted: nil
        case .refused(let reason), .unsuited(let reason), .busy(_, let reason), .down(let reason), .fault(let reason),
            .ambiguous(let reason):
            reason
        }
    }
}
