import Bytes
import DeliveryOutcomes
import Domain
import World

/// A mail or text message to an address of a user. The courier chooses the wording.
public struct Message: Sendable {
    public enum Content: Sendable {
        case code(Code)
        case activation(Activation)
        case announcement(AccountEvent, device: String?, at: Timestamp)
        case recovery(Recovery)
    }

    /// A code for a login or for the confirmation of an address, with the details shown beside it.
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

    /// The code with which a user binds a phone. A courier does not print either value.
    public struct Activation: Sendable {
        public let code: Secret
        /// The URI that the phone's app opens, or that it scans as a QR code.
        public let link: Secret

        public init(code: Secret, link: Secret) {
            self.code = code
            self.link = link
        }
    }

    /// A link to the website about a recovery. A courier does not print it.
    public enum Recovery: Sendable {
        /// The link that begins the recovery.
        case begin(Secret)
        /// The announcement of a change, with the link that cancels it.
        case announcement(cancel: Secret, lost: Factor, readyAt: Timestamp)
    }

    /// The id of the message, the same at every attempt. The receiver can recognise a repetition by
    /// it.
    public let id: OutboxEntryID
    public let to: String
    /// The website's display name.
    public let website: String
    /// The website to which the message is charged; nil for a test by an operator.
    public let account: WebsiteID?
    /// The user's display name; nil if the website gave none.
    public let name: String?
    /// A BCP 47 tag.
    public let language: String?
    public let content: Content
    /// The address of the page with the user's account; nil if the message has none. A courier does
    /// not print it.
    public let accountAddress: Secret?
    /// The time after which the message is not sent. A code expires at this time.
    public let expiresAt: Timestamp

    public init(
        id: OutboxEntryID, to: String, website: String, account: WebsiteID? = nil, name: String?, language: String?,
        content: Content, accountAddress: Secret? = nil, expiresAt: Timestamp
    ) {
        self.accountAddress = accountAddress
        self.id = id
        self.to = to
        self.website = website
        self.account = account
        self.name = name
        self.language = language
        self.content = content
        self.expiresAt = expiresAt
    }
}

/// A courier for mails or for text messages. An implementation answers within 30 seconds, whatever
/// the other side does.
public protocol MessageCourier: Sendable {
    func send(_ message: Message) async -> DeliveryOutcome
    /// Counts a message as sent, with its cost, although its outcome is ambiguous. The relay calls
    /// this when it makes no further attempt and cannot learn whether the receiver has the message.
    func countsAsSent(_ message: Message)
}

extension MessageCourier {
    public func countsAsSent(_ message: Message) {}
}
