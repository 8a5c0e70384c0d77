import Domain
import World

/// The store operations of the cascade: read a challenge with the user's factors, and write one
/// step at a time.
public protocol CascadeStore: Sendable {
    /// The challenge with the user's factors; nil if the challenge has ended, or if its user is
    /// locked, frozen or disabled.
    func cascade(_ challenge: ChallengeID, at: Timestamp) async throws(StoreFailure) -> CascadeRow?
    /// Begins the next step. If the current step is still under way, it ends as expired.
    ///
    /// - Returns: nil if something has changed since the read: there are other steps, the factor's
    ///   counter has moved, or the challenge has ended.
    func begin(_ step: NewStep, as operation: Operation) async throws(StoreFailure) -> BegunStep?
    /// The newest step of the challenge for which this operation began a step.
    func begun(by operation: OperationID) async throws(StoreFailure) -> BegunStep?
    /// Deletes the entry that would begin the next factor, if the challenge still has this number
    /// of steps. If another step has begun meanwhile, the entry belongs to that step and is kept.
    func dropNext(_ challenge: ChallengeID, after steps: Int) async throws(StoreFailure)
    /// Records that the queued push of the challenge waits for its service.
    func setPushAside(_ challenge: ChallengeID) async throws(StoreFailure)
}

/// An open challenge with the factors of its user.
public struct CascadeRow: Sendable, Equatable {
    public let challenge: ChallengeID
    public let user: UserID
    /// The website's display name.
    public let website: String
    /// The website's id, name and policies, for its limits.
    public let account: CascadeAccount
    public let policy: String
    public let context: [UInt8]
    public let askedAt: Timestamp
    public let expiresAt: Timestamp
    /// The language of messages: a tag, or a whole Accept-Language.
    public let language: String?
    public let steps: [ChallengeRow.Step]
    /// The user's active phones.
    public let phones: [AskSubject.Phone]
    /// The user's active code factors.
    public let codes: [CodeFactor]
    public let origin: AskOrigin
    /// Whether the user's codes are locked. Then the relay accepts no code and sends none.
    public let areCodesLocked: Bool
    /// Whether the outbox has an entry that can begin the next factor.
    public let hasNext: Bool
    /// Whether the user's expiry has passed. Then the relay begins no factor.
    public let hasUserExpired: Bool

    public init(
        challenge: ChallengeID, user: UserID, website: String, account: CascadeAccount, policy: String,
        context: [UInt8], askedAt: Timestamp,
        expiresAt: Timestamp, language: String?, steps: [ChallengeRow.Step], phones: [AskSubject.Phone],
        codes: [CodeFactor], origin: AskOrigin, areCodesLocked: Bool, hasNext: Bool, hasUserExpired: Bool
    ) {
        self.challenge = challenge
        self.user = user
        self.website = website
        self.account = account
        self.policy = policy
        self.context = context
        self.askedAt = askedAt
        self.expiresAt = expiresAt
        self.language = language
        self.steps = steps
        self.phones = phones
        self.codes = codes
        self.origin = origin
        self.areCodesLocked = areCodesLocked
        self.hasNext = hasNext
        self.hasUserExpired = hasUserExpired
    }

    var tried: [Cascade.CascadeStep] {
        steps.map { Cascade.CascadeStep(factor: $0.factor, state: $0.state, at: $0.at) }
    }

    /// Whether the challenge goes on beside a push whose service is down.
    var isPushAside: Bool { steps.contains(where: \.isAside) }
}

extension ChallengeRow.Step {
    /// The reason of a push whose service is down.
    public static let pushDown = "push_down"

    /// Whether it waits in the background: a push whose service is down. It keeps no other step from
    /// beginning.
    var isAside: Bool { factor == .push && state == .queued && reason == Self.pushDown }
}

/// The website of a challenge, as its limits are found.
public struct CascadeAccount: Sendable, Equatable {
    public let id: WebsiteID
    public let name: String
    /// The policies of the website's row.
    public let policy: String

    public init(id: WebsiteID, name: String, policy: String) {
        (self.id, self.name, self.policy) = (id, name, policy)
    }
}

/// A step that begins, with the outbox entries that it writes.
public struct NewStep: Sendable {
    public let challenge: ChallengeID
    public let user: UserID
    public let factor: Factor
    /// The number of steps that the challenge has before this one.
    public let after: Int
    /// Whether the step begins even if a phone has shown the challenge (the current step is
    /// `seen`).
    public let interruptsPhone: Bool
    public let at: Timestamp
    /// Whether the step begins beside a queued push, which stays queued.
    public var setsPushAside = false
    /// The reason if the step is refused at once; nil otherwise.
    public var refusal: String?
    /// The pushes of the step, one for each phone. Beyond the user's push limit none is written,
    /// and the step becomes a pull: the relay waits for the phones.
    public var pushes: [NewChallenge.PushEntry] = []
    public let limits: AskLimits
    /// The code of a mail or text message.
    public var code: CodeToSend?
    /// The tallies that a text message increments. If one of them is at its limit, the step is
    /// refused.
    public var charge: SMSCharge?
    /// The entry that begins the next factor automatically; nil if no factor is left.
    public var next: NewChallenge.NextFactor?

    /// The reason of a text message to a number with a prefix that is not allowed.
    public static let notAllowed = "not_allowed"
    /// The reason of a text message if a tally is at its limit.
    public static let limited = "limited"
    /// The reason of a mail or text message if the website has used up what its policy allows.
    public static let websiteLimited = "website_limited"
    /// The reason of a mail or text message if the website has used up those of outages.
    public static let outageLimited = "outage_limited"

    /// The initial state of the step. A factor with codes that the user has already (app, token,
    /// recovery code) counts as sent at once. Other factors are queued.
    public var state: StepState {
        if refusal != nil { return .refused }
        return factor.isCode && !factor.isSent ? .sent : .queued
    }
}

public struct BegunStep: Sendable, Equatable {
    public let factor: Factor
    public let state: StepState
    public let reason: String?
    /// The pushes that the relay must send now.
    public let pushes: [OutboxEntryID]

    public init(factor: Factor, state: StepState, reason: String?, pushes: [OutboxEntryID]) {
        self.factor = factor
        self.state = state
        self.reason = reason
        self.pushes = pushes
    }
}
