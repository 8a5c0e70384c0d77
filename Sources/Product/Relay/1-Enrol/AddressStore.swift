import Domain
import World

/// The store port for changes that a website makes to its user, and for the addresses to which
/// codes are sent (verb Enrol).
public protocol AddressStore: Sendable {
    func change(_ writing: UserUpdate, as operation: Operation) async throws(StoreFailure) -> ChangeOutcome
    /// Returns the counters of the valid codes that were sent to confirm an address.
    func sentCodes(of factor: FactorID, at: Timestamp) async throws(StoreFailure) -> [Int64]
    /// Makes a waiting address active, and also stores it as an address of the user.
    ///
    /// - Parameter isVouchedFor: as for other factors. An address of the user's registration needs
    ///   no approval.
    func confirm(
        address factor: CodeFactor, of user: UserID, failures: Int, code: Int64, isVouchedFor: Bool, at: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// Stores a code to a waiting address and its outbox entry, if the limits allow it.
    func send(_ sending: AddressCode, as operation: Operation) async throws(StoreFailure) -> SendOutcome
}

/// A change of a user that is to be stored.
public struct UserUpdate: Sendable {
    public let user: UserID
    public let website: WebsiteID
    public let change: UserChange
    /// The new addresses. They wait for a code, and replace addresses that waited before.
    public let addresses: [NewFactor]
    /// Whether the user or the website approved the addresses. If not, they are stored only if no
    /// factor of the user was ever bound.
    public let isVouchedFor: Bool
    public let at: Timestamp
    /// The values before and after, for the audit.
    public var changes = ChangedValues()

    public init(
        user: UserID, website: WebsiteID, change: UserChange, addresses: [NewFactor], isVouchedFor: Bool, at: Timestamp
    ) {
        self.user = user
        self.website = website
        self.change = change
        self.addresses = addresses
        self.isVouchedFor = isVouchedFor
        self.at = at
    }
}

/// The outcome of a change of a user.
public enum ChangeOutcome: Sendable, Equatable {
    case done
    /// The user does not exist (any more).
    case gone
    /// The user is locked, frozen, disabled or expired.
    case barred(UserState)
    /// Other users of the website have these addresses.
    case taken([Factor])
    /// An operator has set an expiry, which the website may only shorten.
    case expiryOfOperator
    /// The approval was used before, or the user must approve by now.
    case refused
}

/// A code to be sent to a waiting address.
public struct AddressCode: Sendable {
    public let user: UserID
    public let code: CodeToSend
    /// The use of the SMS limits; nil for a mail.
    public let charge: SMSCharge?
    /// The start of the time in which sent codes are counted.
    public let since: Timestamp

    public init(user: UserID, code: CodeToSend, charge: SMSCharge?, since: Timestamp) {
        self.user = user
        self.code = code
        self.charge = charge
        self.since = since
    }
}

/// The outcome of sending a code to an address.
public enum SendOutcome: Sendable, Equatable {
    case sent
    /// A limit is reached. If it is the limit of codes to an address, `by` is the time of the
    /// oldest counted code. If it is a limit of text messages, `by` is nil.
    case limited(by: Timestamp?)
    /// The website has used up its text messages.
    case websiteLimited
    /// The address no longer waits, or another code was sent at the same time.
    case changed
}
