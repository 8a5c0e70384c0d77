import Crypto
import Domain
import World

/// The store port for recoveries (verb Enrol): the ways back from a lost factor.
public protocol RecoveryStore: Sendable {
    /// Stores a recovery with the mail that brings its link. Earlier links stay valid.
    func start(_ recovery: NewRecovery, as operation: Operation) async throws(StoreFailure) -> RecoveryStart
    /// Returns the recovery with this link, handle or cancelling token, if its user belongs to the
    /// website.
    func recovery(_ token: RecoveryToken, of website: WebsiteID) async throws(StoreFailure) -> RecoveryRow?
    /// Returns the recoveries of a user that have not ended, the newest first.
    func recoveries(of user: UserID, at: Timestamp) async throws(StoreFailure) -> [RecoveryRow]
    /// Stores that the link was handed in. The outcome is the sealed secret of the handle; nil if
    /// something has changed since the rows were read.
    func open(_ opening: RecoveryOpening, as operation: Operation) async throws(StoreFailure) -> OpenedRecovery?
    /// Stores which challenge asks the phones about a recovery. A denial then cancels the recovery.
    func ask(_ asking: RecoveryAsking, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns how many challenges have asked the phones to end the wait of a recovery.
    func timesAsked(about recovery: RecoveryRow) async throws(StoreFailure) -> Int
    /// Stores the second proof. Returns false if something has changed, or if the approval cannot
    /// be used.
    func prove(_ proving: RecoveryProving, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Cancels a recovery. Returns false if it has ended.
    func cancel(_ cancelling: RecoveryCancelling, as operation: Operation) async throws(StoreFailure) -> Bool
    /// The recovery about which an outbox entry asks the phones; nil if there is nothing to ask.
    func recovery(announcedBy entry: OutboxEntryID) async throws(StoreFailure) -> AnnouncedRecovery?
    /// Deletes the outbox entry of an announcement.
    func dropAnnouncement(_ entry: OutboxEntryID) async throws(StoreFailure)
}

/// A stored recovery.
public struct RecoveryRow: Sendable, Equatable {
    public let id: RecoveryID
    public let user: UserID
    public let token: UserToken
    public let username: String
    /// The lost factor; `push` stands for all phones.
    public let factor: Factor
    public let life: RecoveryLife
    public let proof: RecoveryProof?
    public let startedBy: ChangeAuthor
    /// The newest challenge that asks the phones.
    public let challenge: ChallengeID?
    /// The digest of the token that cancels the recovery.
    public let cancel: [UInt8]?
    public let createdAt: Timestamp
    /// The last change of the row. The next change requires that there was none since.
    public let operation: OperationID
    /// The address to which the link was mailed.
    public let address: String

    public init(
        id: RecoveryID, user: UserID, token: UserToken, username: String, factor: Factor, life: RecoveryLife,
        proof: RecoveryProof?, startedBy: ChangeAuthor, challenge: ChallengeID?, cancel: [UInt8]?,
        createdAt: Timestamp, operation: OperationID, address: String
    ) {
        self.id = id
        self.user = user
        self.token = token
        self.username = username
        self.factor = factor
        self.life = life
        self.proof = proof
        self.startedBy = startedBy
        self.challenge = challenge
        self.cancel = cancel
        self.createdAt = createdAt
        self.operation = operation
        self.address = address
    }
}

/// A token of 256 bits that stands for a recovery. The store has only its digest.
public enum RecoveryToken: Sendable {
    case link([UInt8]), handle([UInt8]), cancel([UInt8])

    public static func digest(_ token: String) -> [UInt8] { SHA256.hash(Array(token.utf8)) }
}

/// A recovery to be stored.
public struct NewRecovery: Sendable {
    /// The most links that are mailed to one user in `window`. An operator and the website have a
    /// limit each. Beyond it, one is mailed if the newest has expired, so nobody can use up the
    /// links of somebody else.
    public static let most = 5
    public static let window = Duration.seconds(3600)

    public let id: RecoveryID
    public let user: UserID
    public let factor: Factor
    /// The digest of the token in the link.
    public let link: [UInt8]
    public let life: RecoveryLife
    public let startedBy: ChangeAuthor
    public let mail: RecoveryMail
    public let at: Timestamp
}

/// The outcome of storing a recovery.
public enum RecoveryStart: Sendable, Equatable {
    /// The link is mailed to this address.
    case started(address: String)
    /// Too many links were mailed to the user.
    case limited
    /// The user does not have the factor or a confirmed mail address, or is not active.
    case impossible
}

/// The change by which a link was handed in.
public struct RecoveryOpening: Sendable {
    public let recovery: RecoveryRow
    public let life: RecoveryLife
    /// The digest of the handle.
    public let handle: [UInt8]
    public let secret: StoredSecret?
    public let at: Timestamp
}

/// The stored outcome of handing a link in.
public struct OpenedRecovery: Sendable, Equatable {
    /// The sealed operation secret from the store; nil if none is stored.
    public let secret: [UInt8]?

    public init(secret: [UInt8]?) { self.secret = secret }
}

/// The challenge that asks the phones about a recovery.
public struct RecoveryAsking: Sendable {
    public let recovery: RecoveryRow
    public let challenge: ChallengeID
    /// The entry by which a relay opens the challenge; nil if it is open already.
    public let entry: RecoveryAnnouncement?
    public let at: Timestamp
}

/// The outbox entry by which a relay asks the phones. Its id is that of the operation that opens
/// the challenge, so the challenge is opened once.
public struct RecoveryAnnouncement: Sendable {
    public let entry: OutboxEntryID
    public let challenge: ChallengeID
    /// The relay that asks at once; nil if the next relay that finds the entry does.
    public let holder: RelayID?
    /// When another relay may take it.
    public let dueAt: Timestamp

    public init(_ operation: Operation, sender: RelayID?, at now: Timestamp) {
        entry = OutboxEntryID(leading: operation.id.bytes)
        challenge = operation.shared.identifier("challenge")
        holder = sender
        dueAt = sender == nil ? now : now + Relay.lease
    }
}

/// The second proof of a recovery.
public struct RecoveryProving: Sendable {
    public let recovery: RecoveryRow
    public let life: RecoveryLife
    public let proof: RecoveryProof
    /// The challenge by which the user gave it; nil if an operator did.
    public let approved: Approved?
    /// The operator's words.
    public let note: String?
    /// The digest of the token in the announcements.
    public let cancel: [UInt8]
    /// The announcements to the present address and to a former one.
    public let mails: [RecoveryMail]
    /// The announcement to the phones; nil if they are not asked.
    public let announcement: RecoveryAnnouncement?
    public let at: Timestamp
}

/// The reason why the relay has ended recoveries. The raw values are in the audit and the log.
public enum RecoveryEndReason: String, Sendable {
    /// The user has proved a newer recovery of the same factor.
    case continued
    /// The user has another mail address, or none.
    case address
    /// A factor was removed.
    case factor
    /// A phone was suspended, unbound or replaced.
    case phone
    case fraud
}

extension Operation {
    /// The id of the audit row of the recoveries that this operation has ended.
    public var endOfRecoveries: OperationID { identifier("own \(AccountEvent.recoveryCancelled.rawValue)") }
    /// The id of the audit row of the recovery that a phone has denied by this operation.
    public var denialOfRecovery: OperationID { identifier("denied \(AccountEvent.recoveryCancelled.rawValue)") }
}

/// The end of a recovery before the change.
public struct RecoveryCancelling: Sendable {
    public let recovery: RecoveryID
    public let user: UserID
    public let by: ChangeAuthor
    public let at: Timestamp

    public init(_ recovery: RecoveryID, of user: UserID, by author: ChangeAuthor, at now: Timestamp) {
        self.recovery = recovery
        self.user = user
        by = author
        at = now
    }
}

/// A recovery about which the phones are asked.
public struct AnnouncedRecovery: Sendable {
    public let recovery: RecoveryRow
    public let website: WebsiteRow

    public init(recovery: RecoveryRow, website: WebsiteRow) {
        self.recovery = recovery
        self.website = website
    }
}

/// The recovery by which a factor or an activation is stored. It must be ready at that time.
public struct RecoveryUse: Sendable {
    public let recovery: RecoveryID
    /// The last change of the recovery, as it was read.
    public let operation: OperationID
    public let at: Timestamp
}
