import Domain

/// The announcements of account events that no mail server has accepted.
///
/// Nobody else tells the person of such an event: of a lock, a new phone, or a recovery. So the
/// relay counts them, and the audit has the reason of each.
public enum UnsentAnnouncement {
    public enum Reason: String, CaseIterable, Sendable {
        case noServer = "no_server"
        case noAddress = "no_address"
        /// The user got too many of the kind.
        case limited
        /// The mail server refused the address.
        case refused
        /// The mail server did not accept it within a day.
        case expired
        /// The mail cannot be made or sent for another reason.
        case other

        /// The reasons that stay until an operator or the website changes something.
        public static let lasting: [Reason] = [.noServer, .noAddress]

        /// The reason in the audit.
        public var text: String {
            switch self {
            case .noServer: "no mail server is set"
            case .noAddress: "no address"
            case .limited, .refused, .expired, .other: rawValue
            }
        }

        /// Reads the reason of a settlement; nil if the mail was sent.
        init?(_ settlement: MessageSettlement) {
            switch settlement.step {
            case .sent: return nil
            case .skipped: self = .limited
            case .refused: self = .refused
            case .expired: self = .expired
            default: self = Self.lasting.first { $0.text == settlement.reason } ?? .other
            }
        }
    }
}
