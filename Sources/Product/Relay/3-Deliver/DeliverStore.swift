import Domain
import World

/// The store operations of Deliver: lease outbox entries, and record what became of them.
public protocol DeliverStore: Sendable {
    /// Leases entries that are due. An entry can be leased if it has no holder, if its holder is
    /// this relay, or if its holder is dead. Entries of another living relay are never leased.
    func lease(_ lease: OutboxLease) async throws(StoreFailure) -> LeasedRows<LeasedEntry>
    /// Sets a leased entry aside that could not be read. If no relay wrote the entry, it becomes a
    /// dead letter. Any other entry waits, longer each time, until the rows that it relies on are
    /// repaired.
    func setAside(_ entry: OutboxEntryID, by relay: RelayID, at: Timestamp) async throws(StoreFailure)
    /// The push of an outbox entry; nil if its challenge has ended.
    func push(_ entry: OutboxEntryID) async throws(StoreFailure) -> PushRow?
    /// Records the final outcome of a push and deletes its entry.
    ///
    /// - Returns: false if the push was settled before, or if its entry was deleted with its
    ///   challenge or phone.
    func settle(_ settlement: PushSettlement, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns a push to the queue until the given time.
    ///
    /// - Returns: false if the entry is gone or if another relay holds it.
    func postpone(_ entry: OutboxEntryID, by relay: RelayID, until: Timestamp) async throws(StoreFailure) -> Bool
}

public struct OutboxLease: Sendable {
    public let id: OperationID
    public let relay: RelayID
    public let now: Timestamp
    public let leasedUntil: Timestamp
    /// The end of the lease of mails and text messages, which take longer than pushes.
    public let messagesLeasedUntil: Timestamp
    public let limit: Int
    /// The kinds of messages that are not leased, because enough of them wait in this relay.
    public let skipped: Set<MessageKind>

    public init(
        id: OperationID, relay: RelayID, now: Timestamp, leasedUntil: Timestamp, messagesLeasedUntil: Timestamp,
        limit: Int, skipped: Set<MessageKind> = []
    ) {
        self.id = id
        self.relay = relay
        self.now = now
        self.leasedUntil = leasedUntil
        self.messagesLeasedUntil = messagesLeasedUntil
        self.limit = limit
        self.skipped = skipped
    }
}

public struct LeasedEntry: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case push, mail, sms, next, expiry, recovery
    }

    public let id: OutboxEntryID
    public let kind: Kind
    /// The challenge; nil if the entry does not belong to a login.
    public let challenge: ChallengeID?
    /// The website on whose behalf it is; nil if its user is gone.
    public let website: WebsiteID?

    public init(id: OutboxEntryID, kind: Kind, challenge: ChallengeID?, website: WebsiteID?) {
        self.website = website
        self.id = id
        self.kind = kind
        self.challenge = challenge
    }
}

/// A push as the relay builds it again from the store.
public struct PushRow: Sendable, Equatable {
    public let challenge: ChallengeID
    public let user: UserID
    public let device: DeviceID
    /// The device token; empty if the phone cannot be pushed any more.
    public let deviceToken: String
    public let environment: PushEnvironment
    public let policy: String
    public let website: String
    public let context: [UInt8]
    public let askedAt: Timestamp
    public let expiresAt: Timestamp
    /// The number of attempts so far.
    public let attempts: Int

    public init(
        challenge: ChallengeID, user: UserID, device: DeviceID, deviceToken: String, environment: PushEnvironment,
        policy: String,
        website: String, context: [UInt8], askedAt: Timestamp, expiresAt: Timestamp, attempts: Int
    ) {
        self.challenge = challenge
        self.user = user
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

/// The final outcome of one push. It does not end the challenge: the user may still answer.
public struct PushSettlement: Sendable {
    public let entry: OutboxEntryID
    public let challenge: ChallengeID
    public let step: StepState
    /// The reason why the push failed, for operators and the website. It contains only printable
    /// ASCII and fits its column.
    public let reason: String?
    public let deviceToken: String
    /// The time since when the push service reports the token as dead; nil if it does not. The
    /// token is deleted if the phone still has it and registered it before this time.
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

    /// Makes a text printable and at most 64 characters long. A push service or gateway controls
    /// the text, and websites show it to people.
    static func printable(_ text: String) -> String {
        let plain = text.unicodeScalars.prefix(longestReason).map { (" "..."~").contains($0) ? $0 : "?" }
        return plain.isEmpty ? "unknown" : String(String.UnicodeScalarView(plain))
    }
}
