import Domain
import World

/// The store port of the verb Ask: a website opens a challenge for a user, and its delivery begins.
public protocol AskStore: Sendable {
    /// Returns the user with what Ask needs; nil if the website has no such user.
    ///
    /// - Parameter key: the idempotency key of the request, to learn whether it was used.
    func subject(_ subject: Subject, of website: WebsiteID, within limits: AskLimits, key: IdempotentRequest?)
        async throws(StoreFailure) -> AskSubject?
    /// Stores the challenge if the login limit allows one more. With the user's row locked, it then
    /// decides how the challenge begins. If the user is locked, frozen or disabled, the challenge
    /// fails at once. Beyond the push limit, the challenge is stored but not pushed.
    ///
    /// - Parameter claim: claims the idempotency key of the request in the same change. The outcome
    ///   is `unclaimed` if the key is used, or if the change is not a usual one.
    func ask(
        _ challenge: NewChallenge, within limits: AskLimits, claiming claim: IdempotencyClaim?, as operation: Operation
    ) async throws(StoreFailure) -> AskOutcome
}

extension AskStore {
    public func subject(
        _ subject: Subject, of website: WebsiteID, within limits: AskLimits
    ) async throws(StoreFailure) -> AskSubject? {
        try await self.subject(subject, of: website, within: limits, key: nil)
    }

    public func ask(
        _ challenge: NewChallenge, within limits: AskLimits, as operation: Operation
    ) async throws(StoreFailure) -> AskOutcome {
        try await ask(challenge, within: limits, claiming: nil, as: operation)
    }
}

/// The origin of a challenge. A challenge ends only open ones of the same or a lower origin, is not
/// shown while one of a higher origin is open, and counts with those of its own. The raw values are
/// in the database.
public enum AskOrigin: Int, Sendable {
    /// A request that the relay repeats for somebody who may not be the user. It is in nobody's way.
    case reminder = -1
    case unknownBrowser = 0
    case knownBrowser = 1
}

/// Limits on the logins and pushes of a user in the time that begins at `since`. Logins from known
/// browsers and logins from other browsers have separate budgets. So an attacker cannot use up the
/// budget of the user's own browsers.
public struct AskLimits: Sendable {
    public let since: Timestamp
    public let logins: Int
    public let pushes: Int
    public let origin: AskOrigin

    /// The time of the request.
    public var now: Timestamp { since + Policy.limitWindow }

    public init(since: Timestamp, logins: Int, pushes: Int, origin: AskOrigin = .unknownBrowser) {
        self.since = since
        self.logins = logins
        self.pushes = pushes
        self.origin = origin
    }
}

public enum AskOutcome: Sendable, Equatable {
    case stored(StoredChallenge)
    /// The login limit is reached. There is room again when the challenge that was asked at this
    /// moment no longer counts.
    case limited(by: Timestamp)
    /// The user was deleted, or the website disabled, after it was read.
    case gone
    /// The idempotency key must be claimed first; nothing is stored.
    case unclaimed
}

/// A stored challenge. It is the same when the operation is carried out again.
public struct StoredChallenge: Sendable, Equatable {
    public let life: ChallengeLife
    public let number: String?
    /// The factor with which the challenge began; nil if none has begun.
    public let factor: Factor?
    /// The planned pushes that are in the outbox and are to be sent.
    public let pushes: [OutboxEntryID]
    /// The open challenges that this one superseded.
    public let superseded: [ChallengeID]

    public init(
        life: ChallengeLife, number: String?, factor: Factor?, pushes: [OutboxEntryID], superseded: [ChallengeID]
    ) {
        self.life = life
        self.number = number
        self.factor = factor
        self.pushes = pushes
        self.superseded = superseded
    }
}

/// The user whom a request names, by token or by name.
public enum Subject: Sendable, Equatable {
    case token(UserToken)
    case username(String)
}

/// A user with the data that Ask needs: active phones, kinds of code factors, and whether the login
/// limit allows one more challenge.
public struct AskSubject: Sendable, Equatable {
    public struct Phone: Sendable, Equatable {
        public let id: DeviceID
        public let platform: Platform
        /// The device token; empty if the phone polls by itself, or if the push service no longer
        /// knows the token.
        public let pushToken: String
        public let environment: PushEnvironment
        /// Whether the phone has a key. A phone without a key was bound by its website, and cannot
        /// poll.
        public let hasKey: Bool

        public init(
            id: DeviceID, platform: Platform, pushToken: String, environment: PushEnvironment, hasKey: Bool
        ) {
            self.id = id
            self.platform = platform
            self.pushToken = pushToken
            self.environment = environment
            self.hasKey = hasKey
        }
    }

    public let user: UserID
    public let username: String
    /// The language that the website stored for the user.
    public let language: String?
    /// The policy of the user's group in a directory: JSON of the keys that differ from the
    /// website's; nil for none.
    public let policy: String?
    public let phones: [Phone]
    /// The kinds of the user's active code factors.
    public let codes: [Factor]
    /// Whether all codes of the user are refused because of a code lock.
    public let areCodesLocked: Bool
    /// The progress of the user's enrolment.
    public let enrolment: EnrolmentState
    /// When the login limit is reached: the time of the challenge that must no longer count before
    /// there is room for another. Otherwise nil.
    public let limitedBy: Timestamp?
    /// Whether the idempotency key of the request was used.
    public let isKeyUsed: Bool

    public init(
        user: UserID, username: String, language: String? = nil, policy: String? = nil, phones: [Phone],
        codes: [Factor],
        areCodesLocked: Bool, enrolment: EnrolmentState, limitedBy: Timestamp?, isKeyUsed: Bool = false
    ) {
        self.isKeyUsed = isKeyUsed
        self.user = user
        self.username = username
        self.language = language
        self.policy = policy
        self.phones = phones
        self.codes = codes
        self.areCodesLocked = areCodesLocked
        self.enrolment = enrolment
        self.limitedBy = limitedBy
    }
}

/// A challenge to be stored, with the outbox entries that belong to it.
public struct NewChallenge: Sendable {
    public let id: ChallengeID
    public let website: WebsiteID
    public let user: UserID
    public let life: ChallengeLife
    public let policy: String
    public let context: [UInt8]
    public let nonce: [UInt8]
    public let number: String?
    /// For an approval: the digest of the change that the user approves; otherwise nil.
    public let approves: [UInt8]?
    /// The language of messages: a tag, or a whole Accept-Language.
    public let language: String?
    /// The trace of the website's request; nil if it named none.
    public let trace: TraceParent?
    /// The factor with which the challenge begins if nothing is pushed; nil if that factor needs a
    /// message first.
    public let otherwise: Factor?
    public let pushes: [PushEntry]
    /// The outbox entry that ends the challenge at its expiry.
    public let expiry: OutboxEntryID
    public let next: NextFactor?
    public let askedAt: Timestamp

    /// The outbox entry that begins the next factor without a request.
    public struct NextFactor: Sendable, Equatable {
        public let id: OutboxEntryID
        /// When the next factor begins; nil if it begins only after the one before became
        /// undeliverable.
        public let due: Timestamp?
        /// The relay that begins it at once, and holds the lease; nil if the entry waits until it
        /// is due.
        public let holder: RelayID?
    }

    /// The outbox entry of a push, stored before the push is sent.
    public struct PushEntry: Sendable {
        public let id: OutboxEntryID
        public let device: DeviceID
        public let leasedUntil: Timestamp
        public let holder: RelayID
    }
}
