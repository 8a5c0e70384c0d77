import Domain
import World

/// Enrol: a phone is bound, by itself with an activation code and a proof of its key, or by its website (the
/// original's form, where the website's policy allows it).
public protocol BindStore: Sendable {
    /// The user and its website for a token, or nil.
    func enrolment(of token: UserToken) async throws(StoreFailure) -> Enrolment?
    /// How far a phone of this user has come with this code.
    ///
    /// - Parameter binding: the operation that is, or will be, the use of this code by this phone.
    func progress(of device: DeviceID, user: UserID, code digest: [UInt8], binding: OperationID, at: Timestamp)
        async throws(StoreFailure) -> Progress
    /// Uses the code and binds the phone, as the guards allow it: one that the user has to approve of waits.
    ///
    /// - Parameter secret: what the phone's revocation code is derived from; stored if the phone need not wait.
    func bind(_ device: NewDevice, digest: [UInt8], slots: Int, secret: StoredSecret, as operation: Operation)
        async throws(StoreFailure) -> BindOutcome
    /// A waiting phone waits for another challenge from now on. False when it does not wait for that one.
    func await(_ next: ChallengeID, insteadOf challenge: ChallengeID, device: DeviceID)
        async throws(StoreFailure) -> Bool
    /// Uses the approval and makes the waiting phone an active one.
    ///
    /// - Parameter secret: as for `bind`, and under the same operation.
    func admit(
        _ admission: DeviceApproval, slots: Int, secret: StoredSecret, as operation: Operation
    ) async throws(StoreFailure) -> BindOutcome
    /// Binds or replaces the one keyless phone that a website keeps for its user, unless an operator has taken it away.
    func bindByWebsite(_ device: NewDevice, website: WebsiteID, as operation: Operation)
        async throws(StoreFailure) -> WebsiteBindOutcome
}

public enum WebsiteBindOutcome: Sendable, Equatable {
    case done
    /// There is no such user (any more).
    case gone
    /// An operator has suspended or unbound it.
    case blockedByOperator
}

public struct Enrolment: Sendable, Equatable {
    public let user: UserID
    public let website: WebsiteRow

    public init(user: UserID, website: WebsiteRow) {
        self.user = user
        self.website = website
    }
}

public struct Progress: Sendable, Equatable {
    public struct Code: Sendable, Equatable {
        public let expiresAt: Timestamp
        /// When it bound a phone, or made it wait.
        public let usedAt: Timestamp?
        /// The operation that used it.
        public let usedBy: OperationID?
        public let approval: Approval?

        public init(expiresAt: Timestamp, usedAt: Timestamp?, usedBy: OperationID?, approval: Approval?) {
            self.expiresAt = expiresAt
            self.usedAt = usedAt
            self.usedBy = usedBy
            self.approval = approval
        }
    }

    public struct Phone: Sendable, Equatable {
        public let state: DeviceState
        /// While it waits.
        public let approval: ChallengeID?
        /// The digest of its revocation code.
        public let revocation: [UInt8]?

        public init(state: DeviceState, approval: ChallengeID?, revocation: [UInt8]?) {
            self.state = state
            self.approval = approval
            self.revocation = revocation
        }
    }

    public let isProved: Bool
    /// The user is being asked something.
    public let isAsked: Bool
    /// Nil when the user has no such code.
    public let code: Code?
    public let phone: Phone?
    /// The secret of the binding, sealed; nil until the phone is active, and once its time is over.
    public let secret: [UInt8]?

    public init(isProved: Bool, isAsked: Bool, code: Code?, phone: Phone?, secret: [UInt8]?) {
        self.isProved = isProved
        self.isAsked = isAsked
        self.code = code
        self.phone = phone
        self.secret = secret
    }
}

public enum BindOutcome: Sendable, Equatable {
    case done
    /// The user has as many phones as the policy allows.
    case full
    /// What the guards ask for is not so (any more).
    case refused
}

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
    /// Where it has to wait: the challenge with which its user approves of it.
    public internal(set) var approval: ChallengeID?
    public let at: Timestamp

    public var state: DeviceState { approval == nil ? .active : .waiting }
}

/// A waiting phone that its user has approved of.
public struct DeviceApproval: Sendable {
    public let device: DeviceID
    public let user: UserID
    public let challenge: ChallengeID
    /// Of what the user approved.
    public let approves: [UInt8]
    /// The digest of the code that it came with.
    public let code: [UInt8]
    /// The digest of its revocation code, which is drawn only now.
    public let revocation: [UInt8]
    public let at: Timestamp
}
