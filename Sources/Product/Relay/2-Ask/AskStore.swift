import Domain
import World

/// Ask: the website asks about a user; a challenge is stored and its delivery begins.
public protocol AskStore: Sendable {
    func subject(_ subject: Subject, of website: WebsiteID, within limits: AskLimits)
        async throws(StoreFailure) -> AskSubject?
    /// Stores the challenge if there is room for one more, and then decides, with the user's row locked, what becomes of
    /// it: a user who is locked or frozen is asked nothing, and beyond the push limit nothing is pushed.
    func ask(_ challenge: NewChallenge, within limits: AskLimits, as operation: Operation)
        async throws(StoreFailure) -> AskOutcome
}

/// Limits on the logins and pushes of a user in the time that begins at `since`. Logins from
/// browsers that the website knows and logins from other browsers have separate budgets, so nobody
/// uses up the budget of the user's own browsers.
public struct AskLimits: Sendable {
    public let since: Timestamp
    public let logins: Int
    public let pushes: Int
    /// The limits are those of known browsers.
    public let isKnown: Bool

    public init(since: Timestamp, logins: Int, pushes: Int, isKnown: Bool = false) {
        self.since = since
        self.logins = logins
        self.pushes = pushes
        self.isKnown = isKnown
    }
}

public enum AskOutcome: Sendable, Equatable {
    case stored(StoredChallenge)
    /// There is room again once the challenge that was asked at this moment counts no more.
    case limited(by: Timestamp)
    /// The user or the website went away in between.
    case gone
}

/// What became of a new challenge; the same when the operation is carried out again.
public struct StoredChallenge: Sendable, Equatable {
    public let life: ChallengeLife
    public let number: String?
    public let factor: Factor?
    /// Of the pushes that were planned, those that are to be sent.
    public let pushes: [OutboxEntryID]
    /// The challenges that it ended.
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

/// Whom a request is about.
public enum Subject: Sendable, Equatable {
    case token(UserToken)
    case username(String)
}

/// A user as Ask needs it: its active phones and code factors, and whether there is room for one more challenge.
public struct AskSubject: Sendable, Equatable {
    public struct Phone: Sendable, Equatable {
        public let id: DeviceID
        public let platform: Platform
        /// Empty where the phone asks by itself, and where the push service knows it no more.
        public let pushToken: String
        public let environment: PushEnvironment
        /// Without one, it is its website's and cannot ask by itself.
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
    public let phones: [Phone]
    /// Kinds of active code factors.
    public let codes: [Factor]
    /// No code of the user is taken now.
    public let areCodesLocked: Bool
    /// When the challenge was asked that must count no more before there is room for another; nil while there is room.
    public let limitedBy: Timestamp?

    public init(
        user: UserID, username: String, phones: [Phone], codes: [Factor], areCodesLocked: Bool, limitedBy: Timestamp?
    ) {
        self.user = user
        self.username = username
        self.phones = phones
        self.codes = codes
        self.areCodesLocked = areCodesLocked
        self.limitedBy = limitedBy
    }
}

public struct NewChallenge: Sendable {
    public let id: ChallengeID
    public let website: WebsiteID
    public let user: UserID
    public let life: ChallengeLife
    public let policy: String
    public let context: [UInt8]
    public let nonce: [UInt8]
    public let number: String?
    /// Of an approval: the digest of what it is for.
    public let approves: [UInt8]?
    /// For what is sent to a user who has no language.
    public let language: String?
    /// Where nothing is pushed: the factor that it begins with, if that needs nothing sent.
    public let otherwise: Factor?
    public let pushes: [PushEntry]
    public let expiry: OutboxEntryID
    public let next: NextFactor?
    public let askedAt: Timestamp

    /// When the next factor begins by itself.
    public struct NextFactor: Sendable, Equatable {
        public let id: OutboxEntryID
        /// Nil where it waits for the one before it to come to nothing.
        public let due: Timestamp?
        /// The relay that begins it right away.
        public let holder: RelayID?
    }

    /// A push that is written down before it is sent.
    public struct PushEntry: Sendable {
        public let id: OutboxEntryID
        public let device: DeviceID
        public let leasedUntil: Timestamp
        public let holder: RelayID
    }
}
