import Domain
import World

/// Deliver: what the outbox holds is done, and what came of it is written down.
public protocol DeliverStore: Sendable {
    /// Leases rows that are due: nobody's, this relay's own whose lease is over, never another living relay's.
    func lease(_ claim: OutboxLease) async throws(StoreFailure) -> ClaimedRows<LeasedEntry>
    /// Takes a claimed row that could not be read out of the way. A row that no relay wrote is dead. Any other waits, each
    /// time longer, until the rows that it relies on are repaired.
    func setAside(_ entry: OutboxEntryID, by relay: RelayID, at: Timestamp) async throws(StoreFailure)
    /// Nil once its challenge has ended.
    func push(_ entry: OutboxEntryID) async throws(StoreFailure) -> PushRow?
    /// Once for each push: false when it was settled before, or went with its challenge or its phone.
    func settle(_ settlement: PushSettlement, as operation: Operation) async throws(StoreFailure) -> Bool
    /// False when the row is no more this relay's to put back: another has it, or it is gone.
    func postpone(_ entry: OutboxEntryID, by relay: RelayID, until: Timestamp) async throws(StoreFailure) -> Bool
}

public struct OutboxLease: Sendable {
    public let id: OperationID
    public let relay: RelayID
    public let now: Timestamp
    public let leasedUntil: Timestamp
    /// Of mails and text messages, which take longer.
    public let messagesLeasedUntil: Timestamp
    public let limit: Int
}

public struct LeasedEntry: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case push, mail, sms, next, expiry
    }

    public let id: OutboxEntryID
    public let kind: Kind
    /// Nil for what belongs to no login.
    public let challenge: ChallengeID?

    public init(id: OutboxEntryID, kind: Kind, challenge: ChallengeID?) {
        self.id = id
        self.kind = kind
        self.challenge = challenge
    }
}

/// A push as it can be made again from the store.
public struct PushRow: Sendable, Equatable {
    public let challenge: ChallengeID
    public let device: DeviceID
    /// Empty where nothing can be pushed to the phone any more.
    public let deviceToken: String
    public let environment: PushEnvironment
    public let policy: String
    public let website: String
    public let context: [UInt8]
    public let askedAt: Timestamp
    public let expiresAt: Timestamp
    /// How often it has been tried.
    public let attempts: Int

    public init(
        challenge: ChallengeID, device: DeviceID, deviceToken: String, environment: PushEnvironment, policy: String,
        website: String, context: [UInt8], askedAt: Timestamp, expiresAt: Timestamp, attempts: Int
    ) {
        self.challenge = challenge
        self.device = device
        self.deviceToken = deviceToken
        self.environment = environment
        self.policy = policy
        self.website = website
        self.context = context
        self.askedAt = askedAt
        self.expiresAt = expiresAt
        self.attempts = attempts
    }
}

/// The end of one push. It says nothing about the challenge: whoever is asked may answer all the same.
public struct PushSettlement: Sendable {
    public let entry: OutboxEntryID
    public let challenge: ChallengeID
    public let step: StepState
    /// Why nothing came of it, for people and for the website. It is as long as its column, and printable.
    public let reason: String?
    public let deviceToken: String
    /// Set when the token is dead: it is dropped if it is the phone's still and was registered before this moment.
    public let tokenDeadSince: Timestamp?
    public let at: Timestamp

    init(
        of push: Push, _ step: StepState, _ reason: String?, tokenDeadSince: Timestamp? = nil, at: Timestamp
    ) {
        entry = push.id
        challenge = push.challenge
        self.step = step
        self.reason = reason.map(Self.printable)
        deviceToken = push.deviceToken
        self.tokenDeadSince = tokenDeadSince
        self.at = at
    }

    static let longestReason = 64

    /// Whoever carries it has the say in what it holds, and a website shows it to people.
    static func printable(_ text: String) -> String {
        let plain = text.unicodeScalars.prefix(longestReason).map { (" "..."~").contains($0) ? $0 : "?" }
        return plain.isEmpty ? "unknown" : String(String.UnicodeScalarView(plain))
    }
}
