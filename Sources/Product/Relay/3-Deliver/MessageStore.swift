import Domain
import World

/// Deliver: the mails and text messages that the outbox holds.
public protocol MessageStore: Sendable {
    /// Nil once its challenge or its user is gone, and while it is dead.
    func message(_ entry: OutboxEntryID) async throws(StoreFailure) -> MessageRow?
    /// Once for each message: false when it was settled before, or went with its challenge or its user.
    func settle(_ settlement: MessageSettlement, as operation: Operation) async throws(StoreFailure) -> Bool
    /// False when the row is no more this relay's to put back: another has it, or it is gone.
    func postpone(_ pause: MessageRetry, by relay: RelayID) async throws(StoreFailure) -> Bool
    func backlog(at: Timestamp) async throws(StoreFailure) -> Backlog
}

/// How the outbox stands.
public struct Backlog: Sendable, Equatable {
    /// When that was due which has been due for longest; nil where nothing is late.
    public let oldestDue: Timestamp?
    public let dead: Int64

    public init(oldestDue: Timestamp?, dead: Int64) {
        self.oldestDue = oldestDue
        self.dead = dead
    }
}

public enum MessageKind: String, Sendable, CaseIterable {
    case mail, sms

    var factor: Factor { self == .mail ? .mail : .sms }
}

/// A message as it is made from the store.
public struct MessageRow: Sendable {
    public enum Content: Sendable {
        /// - Parameter context: of its challenge.
        case code(CodeFactor, counter: Int64, context: [UInt8]?)
        case announcement(AccountEvent, device: String?)
        /// What it was to say is gone: a factor that was removed.
        case nothing
    }

    public let id: OutboxEntryID
    public let kind: MessageKind
    public let user: UserID
    public let website: WebsiteID
    /// Nil for what belongs to no login.
    public let challenge: ChallengeID?
    /// As people know them.
    public let websiteName: String
    public let userName: String?
    public let language: String?
    /// Nil where the user has none any more.
    public let address: String?
    public let content: Content
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// How often it has been tried.
    public let attempts: Int
    /// What came of the last try.
    public let reason: String?
    /// Since when it may have been taken over.
    public let ambiguousAt: Timestamp?
    /// When the next factor begins by itself.
    public let deadline: Timestamp?

    public init(
        id: OutboxEntryID, kind: MessageKind, user: UserID, website: WebsiteID, challenge: ChallengeID?,
        websiteName: String, userName: String?, language: String?, address: String?, content: Content,
        createdAt: Timestamp, expiresAt: Timestamp, attempts: Int, reason: String?, ambiguousAt: Timestamp?,
        deadline: Timestamp?
    ) {
        self.id = id
        self.kind = kind
        self.user = user
        self.website = website
        self.challenge = challenge
        self.websiteName = websiteName
        self.userName = userName
        self.language = language
        self.address = address
        self.content = content
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.attempts = attempts
        self.reason = reason
        self.ambiguousAt = ambiguousAt
        self.deadline = deadline
    }
}

/// The end of one message. Of a code's it says nothing about the challenge: whoever has the code may type it all the same.
public struct MessageSettlement: Sendable {
    public let entry: OutboxEntryID
    public let kind: MessageKind
    public let challenge: ChallengeID?
    /// What becomes of the factor's step.
    public let step: StepState
    /// Why nothing came of it. It is as long as its column, and printable.
    public let reason: String?
    /// Its row stays, for an operator to look at.
    public let isDead: Bool
    public let at: Timestamp

    init(of row: MessageRow, _ step: StepState, _ reason: String?, isDead: Bool, at: Timestamp) {
        entry = row.id
        kind = row.kind
        challenge = row.challenge
        self.step = step
        self.reason = reason.map(PushSettlement.printable)
        self.isDead = isDead
        self.at = at
    }
}

/// A message that is tried again.
public struct MessageRetry: Sendable {
    public let entry: OutboxEntryID
    public let until: Timestamp
    public let reason: String
    /// Since when it may have been taken over.
    public let ambiguousAt: Timestamp?

    init(_ entry: OutboxEntryID, until: Timestamp, reason: String, ambiguousAt: Timestamp?) {
        self.entry = entry
        self.until = until
        self.reason = PushSettlement.printable(reason)
        self.ambiguousAt = ambiguousAt
    }
}
