import Domain
import World

/// Enrol: what a website changes about its user, and the addresses that codes go to.
public protocol AddressStore: Sendable {
    func change(_ writing: UserUpdate, as operation: Operation) async throws(StoreFailure) -> ChangeOutcome
    /// The counters of the codes that were sent to confirm an address, and that still do.
    func sentCodes(of factor: FactorID, at: Timestamp) async throws(StoreFailure) -> [Int64]
    /// The address counts from now on, as the user's own too.
    ///
    /// - Parameter isVouchedFor: as for other factors; of an address that the user had at the registration nobody is asked.
    func confirm(
        address factor: CodeFactor, of user: UserID, failures: Int, code: Int64, isVouchedFor: Bool, at: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    func send(_ sending: AddressCode, as operation: Operation) async throws(StoreFailure) -> SendOutcome
}

public struct UserUpdate: Sendable {
    public let user: UserID
    public let website: WebsiteID
    public let change: UserChange
    /// They wait for a code, in the place of what waited before.
    public let addresses: [NewFactor]
    /// Somebody's word was given for them: without, nothing may be bound of the user's own yet.
    public let isVouchedFor: Bool
    public let at: Timestamp

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

public enum ChangeOutcome: Sendable, Equatable {
    case done
    case gone
    case barred(UserState)
    case taken([Factor])
    case refused
}

/// A code to an address that waits.
public struct AddressCode: Sendable {
    public let user: UserID
    public let code: CodeToSend
    /// Of a text message.
    public let charge: SMSCharge?
    /// The codes that it was sent since then are counted.
    public let since: Timestamp

    public init(user: UserID, code: CodeToSend, charge: SMSCharge?, since: Timestamp) {
        self.user = user
        self.code = code
        self.charge = charge
        self.since = since
    }
}

public enum SendOutcome: Sendable, Equatable {
    case sent
    /// So many codes went there: when the oldest of them did; nil where text messages have come to their end.
    case limited(by: Timestamp?)
    /// It waits no more, or another code has just been sent.
    case changed
}
