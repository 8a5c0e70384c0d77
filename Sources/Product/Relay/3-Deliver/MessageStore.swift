import Domain
import World

/// The store operations of Deliver for mails and text messages in the outbox.
public protocol MessageStore: Sendable {
    /// The message of an outbox entry that the relay holds; nil if another relay holds it, if its
    /// challenge has ended, if its user is gone, or while the entry is a dead letter.
    func message(_ entry: OutboxEntryID, of relay: RelayID) async throws(StoreFailure) -> MessageRow?
    /// Records the final outcome of a message and deletes its entry or marks it dead.
    ///
    /// - Returns: false if the message was settled before, or if its entry was deleted with its
    ///   challenge or user.
    func settle(_ settlement: MessageSettlement, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns a message to the queue.
    ///
    /// - Returns: false if the entry is gone or if another relay holds it.
    func postpone(_ pause: MessageRetry, by relay: RelayID) async throws(StoreFailure) -> Bool
    func backlog(at: Timestamp) async throws(StoreFailure) -> Backlog
}

/// The backlog of the outbox.
public struct Backlog: Sendable, Equatable {
    /// The due time of the oldest overdue entry; nil if no entry is overdue.
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

/// A message as the relay builds it from the store.
public struct MessageRow: Sendable {
    public enum Content: Sendable {
        /// - Parameter context: the context of the challenge.
        case code(CodeFactor, counter: Int64, context: [UInt8]?)
        case announcement(AccountEvent, device: String?)
        /// - Parameters:
        ///   - website: the name in the URI.
        ///   - sealed: the secret of the code.
        case activation(UserToken, website: String, sealed: [UInt8])
        case recovery(MailedRecovery)
        /// The content no longer exists: its factor was removed.
        case nothing
    }

    public let id: OutboxEntryID
    public let kind: MessageKind
    public let user: UserID
    public let website: WebsiteID
    /// The challenge; nil if the message does not belong to a login.
    public let challenge: ChallengeID?
    /// The website's name, as operators know it.
    public let websiteKey: String
    /// The policies that the website sets itself, as JSON.
    public let websitePolicy: String
    public let token: UserToken
    /// Whether the address is that of the user's active factor. Another one, such as the former
    /// address, may be another person's.
    public let isToFactor: Bool
    /// The display names of the website and the user.
    public let websiteName: String
    public let userName: String?
    public let language: String?
    /// The address; nil if the user has none any more.
    public let address: String?
    public let content: Content
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// The number of attempts so far.
    public let attempts: Int
    /// The reason of the last failed attempt.
    public let reason: String?
    /// The time of the first ambiguous attempt; nil if there was none. Since then the receiver may
    /// have the message.
    public let ambiguousAt: Timestamp?
    /// The time at which the next factor begins automatically.
    public let deadline: Timestamp?

    public init(
        id: OutboxEntryID, kind: MessageKind, user: UserID, token: UserToken, website: WebsiteID, websiteKey: String,
        websitePolicy: String, isToFactor: Bool, challenge: ChallengeID?, websiteName: String, userName: String?,
        language: String?, address: String?,
        content: Content,
        createdAt: Timestamp, expiresAt: Timestamp, attempts: Int, reason: String?, ambiguousAt: Timestamp?,
        deadline: Timestamp?
    ) {
        self.token = token
        self.websitePolicy = websitePolicy
        self.isToFactor = isToFactor
        self.id = id
        self.kind = kind
        self.user = user
        self.website = website
        self.websiteKey = websiteKey
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

/// A recovery about which a mail is sent.
public struct MailedRecovery: Sendable {
    public let id: RecoveryID
    /// The event of the outbox entry: whether it is the link or the announcement.
    public let event: String
    public let lost: Factor
    public let life: RecoveryLife
    /// The policies of the website, with the page for the link.
    public let policy: String
    /// The secret of the token.
    public let sealed: [UInt8]

    public init(id: RecoveryID, event: String, lost: Factor, life: RecoveryLife, policy: String, sealed: [UInt8]) {
        self.id = id
        self.event = event
        self.lost = lost
        self.life = life
        self.policy = policy
        self.sealed = sealed
    }

    var isAnnouncement: Bool { event != RecoveryMail.link }
}

/// The change of a recovery of which a mail server has accepted the first announcement.
public struct AnnouncedChange: Sendable {
    public let recovery: RecoveryID
    public let user: UserID
    public let life: RecoveryLife
}

/// The final outcome of one message. The outcome of a code does not end the challenge: the user may
/// still enter a code that arrived.
public struct MessageSettlement: Sendable {
    public let entry: OutboxEntryID
    public let kind: MessageKind
    public let challenge: ChallengeID?
    /// The new state of the factor's step.
    public let step: StepState
    /// The reason why the message failed. It contains only printable ASCII and fits its column.
    public let reason: String?
    /// Whether the entry is kept as a dead letter for an operator.
    public let isDead: Bool
    /// Whether the secret that is stored for the entry is deleted.
    public let dropsSecret: Bool
    /// The recovery whose wait begins now; nil for all other messages.
    public let announced: AnnouncedChange?
    public let at: Timestamp

    /// - Parameter acceptedAt: when the attempt began that a server has accepted; nil if none has.
    init(
        of row: MessageRow, _ step: StepState, _ reason: String?, isDead: Bool, acceptedAt: Timestamp? = nil,
        at: Timestamp
    ) {
        entry = row.id
        kind = row.kind
        challenge = row.challenge
        self.step = step
        self.reason = reason.map(PushSettlement.printable)
        self.isDead = isDead
        // A replay of the dead letter must bring the same token.
        dropsSecret =
            switch row.content {
            case .activation, .recovery: !isDead
            case .code, .announcement, .nothing: false
            }
        if let acceptedAt, case .recovery(let mailed) = row.content, mailed.isAnnouncement {
            announced = AnnouncedChange(
                recovery: mailed.id, user: row.user,
                life: mailed.life.announced(at: acceptedAt, since: row.createdAt))
        } else {
            announced = nil
        }
        self.at = at
    }
}

/// A message that the relay will try again.
public struct MessageRetry: Sendable {
    public let entry: OutboxEntryID
    public let until: Timestamp
    public let reason: String
    /// The time of the first ambiguous attempt; nil if there was none.
    public let ambiguousAt: Timestamp?

    init(_ entry: OutboxEntryID, until: Timestamp, reason: String, ambiguousAt: Timestamp?) {
        self.entry = entry
        self.until = until
        self.reason = PushSettlement.printable(reason)
        self.ambiguousAt = ambiguousAt
    }
}
