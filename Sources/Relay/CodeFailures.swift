import Domain
import Log
import World

/// Wrong codes slow a user's code factors down, and lock the user in the end. They are counted for each factor, across
/// challenges, relays and restarts.
public protocol CodeFailureStore: Sendable {
    /// Nil when the guards refused: one of the factors has other failures than were read, the user is in another state,
    /// or the challenge has its end.
    func countWrong(_ wrong: WrongCode, as operation: Operation) async throws(StoreFailure) -> Closed?
}

/// A wrong code, and all factors that it could have been of.
public struct WrongCode: Sendable {
    /// More than a user can have: of each kind one that counts and one that waits.
    public static let mostFactors = 10
    /// What the audit calls it.
    public static let event = "code.wrong"

    public let user: UserID
    /// As they were read: nothing is counted where their failures are others by now.
    public let factors: [CodeFactor]
    /// The login that it was for.
    public let challenge: ChallengeID?
    /// In which state the user was; who is frozen may try recovery codes.
    public let state: UserState
    /// With how many failures of one factor the user is locked.
    public let guesses: Int
    public let at: Timestamp

    public init(
        user: UserID, factors: [CodeFactor], challenge: ChallengeID?, state: UserState = .active, guesses: Int,
        at: Timestamp
    ) {
        self.user = user
        self.factors = Array(factors.prefix(Self.mostFactors))
        self.challenge = challenge
        self.state = state
        self.guesses = guesses
        self.at = at
    }
}

extension Relay {
    /// How long no code of these factors is looked at; nil when one may be.
    func pause(of factors: [CodeFactor], at now: Timestamp) -> Duration? {
        factors.compactMap { Failures.wait(after: $0.failures, lastAt: $0.failedAt, at: now) }.max()
    }

    /// False when something has changed since the factors were read: they are to be read again.
    func count(_ wrong: WrongCode, by website: Website, as operation: Operation) async throws(Refusal) -> Bool {
        let counted = try await ask("code") { () async throws(StoreFailure) in
            try await store.countWrong(wrong, as: operation)
        }
        guard let counted else { return false }
        log.info(
            "code.wrong",
            [
                .website: website.name, .user: wrong.user.text, .challenge: wrong.challenge?.text,
                .factor: wrong.factors.map(\.kind.rawValue).joined(separator: ","),
            ])
        if let state = counted.became {
            metrics.barred(state)
            log.warning(
                "user.locked",
                [.website: website.name, .user: wrong.user.text, .challenge: wrong.challenge?.text])
        }
        for challenge in counted.others { ended(challenge, .locked) }
        if counted.became != nil { summonCalls() }
        return true
    }
}
