import Domain
import World

/// What the cascade of a challenge reads, and writes step by step.
public protocol CascadeStore: Sendable {
    /// Nil where nobody is asked any more: the challenge has an end, or its user is locked or frozen.
    func cascade(_ challenge: ChallengeID) async throws(StoreFailure) -> CascadeRow?
    /// Leaves the step that was under way behind and begins the next one. Nil when something has changed since it was
    /// read: there are other steps, the factor's counter has moved, or the challenge has its end.
    func begin(_ step: NewStep, as operation: Operation) async throws(StoreFailure) -> BegunStep?
    /// The newest step of the challenge for which this operation began one.
    func begun(by operation: OperationID) async throws(StoreFailure) -> BegunStep?
    /// Nothing follows by itself, if there are so many steps still: what has begun since has its own that follows.
    func dropNext(_ challenge: ChallengeID, after steps: Int) async throws(StoreFailure)
}

/// An open challenge and what its user has.
public struct CascadeRow: Sendable, Equatable {
    public let challenge: ChallengeID
    public let user: UserID
    /// As people know it.
    public let website: String
    public let policy: String
    public let context: [UInt8]
    public let askedAt: Timestamp
    public let expiresAt: Timestamp
    /// Of the request, for a user who has none.
    public let language: String?
    public let steps: [ChallengeRow.Step]
    /// Active ones.
    public let phones: [AskSubject.Phone]
    /// Active ones.
    public let codes: [CodeFactor]
    /// It was asked from a browser that the website knows.
    public let isKnown: Bool
    /// No code of the user is taken now, and none is sent.
    public let areCodesLocked: Bool
    /// A row of the outbox says that something may follow.
    public let hasNext: Bool

    public init(
        challenge: ChallengeID, user: UserID, website: String, policy: String, context: [UInt8], askedAt: Timestamp,
        expiresAt: Timestamp, language: String?, steps: [ChallengeRow.Step], phones: [AskSubject.Phone],
        codes: [CodeFactor], isKnown: Bool, areCodesLocked: Bool, hasNext: Bool
    ) {
        self.challenge = challenge
        self.user = user
        self.website = website
        self.policy = policy
        self.context = context
        self.askedAt = askedAt
        self.expiresAt = expiresAt
        self.language = language
        self.steps = steps
        self.phones = phones
        self.codes = codes
        self.isKnown = isKnown
        self.areCodesLocked = areCodesLocked
        self.hasNext = hasNext
    }

    var tried: [Cascade.CascadeStep] {
        steps.map { Cascade.CascadeStep(factor: $0.factor, state: $0.state, at: $0.at) }
    }
}

/// A step that begins, with what leaves for it.
public struct NewStep: Sendable {
    public let challenge: ChallengeID
    public let user: UserID
    public let factor: Factor
    /// How many steps there were.
    public let after: Int
    /// Also where a phone has looked at what it is left for.
    public let isByHand: Bool
    public let at: Timestamp
    /// Why it has come to nothing already.
    public var refusal: String?
    /// Of a push, for each phone; beyond the limit none is written, and the phones are waited for.
    public var pushes: [NewChallenge.PushEntry] = []
    public let limits: AskLimits
    /// Of a mail or text message.
    public var code: CodeToSend?
    /// Of a text message: what it counts against. Where there is no room it comes to nothing.
    public var charge: SMSCharge?
    /// What follows by itself; nil where nothing is left.
    public var next: NewChallenge.NextFactor?

    /// Of a text message to a number where none may go.
    public static let notAllowed = "not_allowed"
    /// Of a text message for which there is no room.
    public static let limited = "limited"

    /// A code is shown by something that the user has; everything else has to get there.
    public var state: StepState {
        if refusal != nil { return .refused }
        return factor.isCode && !factor.isSent ? .sent : .queued
    }
}

public struct BegunStep: Sendable, Equatable {
    public let factor: Factor
    public let state: StepState
    public let reason: String?
    /// Those that are to be sent.
    public let pushes: [OutboxEntryID]

    public init(factor: Factor, state: StepState, reason: String?, pushes: [OutboxEntryID]) {
        self.factor = factor
        self.state = state
        self.reason = reason
        self.pushes = pushes
    }
}
