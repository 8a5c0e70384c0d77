import Attestation
import Domain
import World

/// The store port for binding phones (verb Enrol). A phone binds itself with an activation code and
/// a proof of its key. If the website's policy allows it, the website binds a phone without a key,
/// as in the original product.
public protocol BindStore: Sendable {
    /// Returns the user with that token, and its website; nil if there is none.
    func enrolment(of token: UserToken) async throws(StoreFailure) -> Enrolment?
    /// Returns how far a phone of this user has come with this code.
    ///
    /// - Parameter binding: the operation of the use of this code by this phone, whether it has run
    ///   or not.
    func progress(of device: DeviceID, user: UserID, code digest: [UInt8], binding: OperationID, at: Timestamp)
        async throws(StoreFailure) -> Progress
    /// Uses the code and binds the phone if the guards allow it. A phone that its user must approve
    /// is stored as waiting.
    ///
    /// - Parameter secret: the secret from which the revocation code is derived. It is stored only
    ///   if the phone need not wait.
    func bind(_ device: NewDevice, digest: [UInt8], slots: Int, secret: StoredSecret, as operation: Operation)
        async throws(StoreFailure) -> BindOutcome
    /// Makes a waiting phone wait for another challenge. Returns false if it does not wait for
    /// `challenge`.
    func await(_ next: ChallengeID, insteadOf challenge: ChallengeID, device: DeviceID)
        async throws(StoreFailure) -> Bool
    /// Uses the approval and makes the waiting phone active.
    ///
    /// - Parameter secret: as for `bind`, and under the same operation.
    func admit(
        _ admission: DeviceApproval, slots: Int, secret: StoredSecret, as operation: Operation
    ) async throws(StoreFailure) -> BindOutcome
    /// Binds or replaces the one phone without a key that a website has for its user, unless an
    /// operator has suspended or unbound it.
    func bindByWebsite(_ device: NewDevice, website: WebsiteID, as operation: Operation)
        async throws(StoreFailure) -> WebsiteBindOutcome
}

/// The outcome of a binding by the website.
public enum WebsiteBindOutcome: Sendable, Equatable {
    case done
    /// The user does not exist (any more).
    case gone
    /// An operator has suspended or unbound the phone.
    case blockedByOperator
}

/// The user of a token, and its website.
public struct Enrolment: Sendable, Equatable {
    public let user: UserID
    public let website: WebsiteRow

    public init(user: UserID, website: WebsiteRow) {
        self.user = user
        self.website = website
    }
}

/// The progress of the binding of one phone with one activation code.
public struct Progress: Sendable, Equatable {
    /// The activation code.
    public struct Code: Sendable, Equatable {
        public let expiresAt: Timestamp
        /// When the code bound a phone or made it wait; nil if it is unused.
        public let usedAt: Timestamp?
        /// The operation that used the code.
        public let usedBy: OperationID?
        public let approval: Approval?

        public init(expiresAt: Timestamp, usedAt: Timestamp?, usedBy: OperationID?, approval: Approval?) {
            self.expiresAt = expiresAt
            self.usedAt = usedAt
            self.usedBy = usedBy
            self.approval = approval
        }
    }

    /// The stored phone.
    public struct Phone: Sendable, Equatable {
        public let state: DeviceState
        public let platform: Platform
        /// The challenge that the phone waits for; nil unless it waits.
        public let approval: ChallengeID?
        /// The digest of its revocation code.
        public let revocation: [UInt8]?

        public init(state: DeviceState, platform: Platform, approval: ChallengeID?, revocation: [UInt8]?) {
            self.state = state
            self.platform = platform
            self.approval = approval
            self.revocation = revocation
        }
    }

    /// Whether a factor of the user was ever bound, so that a further one needs approval.
    public let isProved: Bool
    /// Whether the user has an open challenge.
    public let isAsked: Bool
    /// The activation code; nil if the user does not have this code.
    public let code: Code?
    /// The phone; nil if it is not stored yet.
    public let phone: Phone?
    /// The sealed secret of the binding; nil until the phone is active, and after it was deleted.
    public let secret: [UInt8]?

    public init(isProved: Bool, isAsked: Bool, code: Code?, phone: Phone?, secret: [UInt8]?) {
        self.isProved = isProved
        self.isAsked = isAsked
        self.code = code
        self.phone = phone
        self.secret = secret
    }
}

/// The outcome of binding a phone or of admitting a waiting one.
public enum BindOutcome: Sendable, Equatable {
    case done
    /// The user has as many phones as the policy allows.
    case full
    /// The guards refused: the state is not as it was read, or no longer.
    case refused
}

/// A phone to be stored.
public struct NewDevice: Sendable {
    public let id: DeviceID
    public let user: UserID
    public let name: String?
    public let platform: Platform
    public let environment: PushEnvironment
    public let pushToken: String
    public let publicKey: [UInt8]?
    public let thumbprint: [UInt8]?
    public let revocation: [UInt8]?
    public let binding: String?
    /// The key to which secrets for the phone are sealed; nil if the phone has none.
    public internal(set) var agreementKey: [UInt8]?
    /// The challenge with which the user approves the phone; nil if it need not wait.
    public internal(set) var approval: ChallengeID?
    /// Whether the phone replaces all others, which its user has lost.
    public internal(set) var replacesOthers = false
    public let at: Timestamp
    /// The attestation and the relay's verdict on it; nil if attestations do not count.
    public internal(set) var attestation: AttestationRow?
    /// The page that the phone is, as it says; nil if it says nothing of a page.
    public internal(set) var page: BoundPage?

    public var state: DeviceState { approval == nil ? .active : .waiting }
}

/// The admission of a waiting phone that its user has approved.
public struct DeviceApproval: Sendable {
    public let device: DeviceID
    public let user: UserID
    public let challenge: ChallengeID
    /// The digest of the approved change.
    public let approves: [UInt8]
    /// The digest of the activation code that the phone used.
    public let code: [UInt8]
    /// The digest of the phone's revocation code, which is created only now.
    public let revocation: [UInt8]
    public let at: Timestamp
}
