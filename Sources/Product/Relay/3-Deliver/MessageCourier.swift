import Bytes
import DeliveryOutcomes
import Domain
import World

/// What leaves for an address of a user: a mail or a text message. How it is worded is its courier's matter.
public struct Message: Sendable {
    public enum Content: Sendable {
        case code(Code)
        case announcement(AccountEvent, device: String?, at: Timestamp)
    }

    /// A code to log in, or to confirm the address, and what is said beside it.
    public struct Code: Sendable {
        public enum Purpose: Sendable, Equatable {
            case login, address
        }

        public let digits: Secret
        public let purpose: Purpose
        public let service: String?
        public let ip: String?
        public let place: String?

        public init(digits: Secret, purpose: Purpose, service: String?, ip: String?, place: String?) {
            self.digits = digits
            self.purpose = purpose
            self.service = service
            self.ip = ip
            self.place = place
        }
    }

    /// The same at every attempt, so that whoever takes it over can tell a repetition.
    public let id: OutboxEntryID
    public let to: String
    /// The website's name as people know it.
    public let website: String
    /// The user's, where the website gave one.
    public let name: String?
    /// A tag of BCP 47.
    public let language: String?
    public let content: Content
    /// Nothing is sent after it; of a code, it counts no more then.
    public let expiresAt: Timestamp

    public init(
        id: OutboxEntryID, to: String, website: String, name: String?, language: String?, content: Content,
        expiresAt: Timestamp
    ) {
        self.id = id
        self.to = to
        self.website = website
        self.name = name
        self.language = language
        self.content = content
        self.expiresAt = expiresAt
    }
}

/// Carries mails, or text messages. An implementation answers within thirty seconds, whatever the other side does.
public protocol MessageCourier: Sendable {
    func send(_ message: Message) async -> MessageOutcome
    /// Whoever was asked may have it, nobody will ever know, and it is not tried again: that costs what a message costs.
    func countsAsSent(_ message: Message)
}

extension MessageCourier {
    public func countsAsSent(_ message: Message) {}
}
