import Domain
import Log
import World

/// The store port that counts wrong codes. Each wrong code delays all codes of its user, and too
/// many in a row lock them. They are counted for each user, across factors, challenges, relays and
/// restarts.
public protocol CodeFailureStore: Sendable {
    /// Counts a wrong code. Returns nil if the guards refused. In that case the user's failures or
    /// state are not as they were read, a factor has changed, or the challenge has ended.
    func countWrong(_ wrong: WrongCode, as operation: Operation) async throws(StoreFailure) -> CountedCode?
    /// Ends a code lock and resets the failures, by an approval that the user gave for exactly
    /// this. Returns false if that lock has ended already, or if the approval was used before.
    func reopenCodes(_ reopening: CodeReopening, as operation: Operation) async throws(StoreFailure) -> Bool
}

/// A wrong code, and all factors that it could have belonged to.
public struct WrongCode: Sendable {
    /// The most factors of one wrong code. A user cannot have more that it fits: of each kind at most
    /// one active and one waiting, and a temporary code has a form of its own.
    public static let mostFactors = 10
    /// The event in the audit.
    public static let event = "code.wrong"

    public let user: UserID
    public let factors: [CodeFactor]
    /// The login for which the code was submitted; nil outside a login.
    public let challenge: ChallengeID?
    /// The state of the user as it was read. A frozen or locked user may still try recovery codes.
    public let state: UserState
    /// The code lockout as it was read. Nothing is counted if it has changed since.
    public let before: CodeLockout
    public let after: CodeLockout
    /// The end of the challenge, if the policy permits no further code. It is written with the count,
    /// so that a relay that dies in between leaves no challenge open that should have ended.
    public let end: ChallengeEnd?
    public let at: Timestamp

    /// - Parameter guesses: the number of consecutive wrong codes at which the codes are locked.
    public init(
        user: UserID, factors: [CodeFactor], challenge: ChallengeID?, state: UserState = .active,
        before: CodeLockout, guesses: Int, end: ChallengeEnd? = nil, at: Timestamp
    ) {
        self.user = user
        self.factors = Array(factors.prefix(Self.mostFactors))
        self.challenge = challenge
        self.state = state
        self.before = before
        after = before.afterWrongCode(limit: guesses, at: at)
        self.end = end
        self.at = at
    }

    /// Returns the operation that ends the challenge, as a part of the one that counts the code.
    public static func ending(_ counting: Operation) -> Operation { counting.part("wrong code") }
}

/// The outcome of counting a wrong code.
public struct CountedCode: Sendable, Equatable {
    /// Whether this wrong code locked the user's codes.
    public let locked: Bool
    /// The user's open challenges at that moment, if the code locked the codes.
    public let open: [ChallengeID]
    /// Whether the wrong code ended its challenge.
    public let hasEnded: Bool

    public init(locked: Bool, open: [ChallengeID], hasEnded: Bool) {
        self.locked = locked
        self.open = open
        self.hasEnded = hasEnded
    }
}

/// The end of a lock of codes by the user's own approval.
public struct CodeReopening: Sendable {
    public let user: UserID
    /// The lock that the approval was given for.
    public let lockedAt: Timestamp
    public let approved: Approved
    public let at: Timestamp

    public init(user: UserID, lockedAt: Timestamp, approved: Approved, at: Timestamp) {
        self.user = user
        self.lockedAt = lockedAt
        self.approved = approved
        self.at = at
    }
}

extension Relay {
    /// Counts a wrong code, and logs it. Returns false if something has changed since the factors
    /// were read, so that they must be read again.
    func count(_ wrong: WrongCode, by website: Website, as operation: Operation) async throws(Refusal) -> Bool {
        let counted = try await withStore("code") { () async throws(StoreFailure) in
            try await store.countWrong(wrong, as: operation)
        }
        guard let counted else { return false }
        log.info(
            "code.wrong",
            [
                .website: website.name, .user: wrong.user.text, .challenge: wrong.challenge?.text,
                .factor: wrong.factors.map(\.kind.rawValue).joined(separator: ","),
            ])
        if counted.hasEnded, let challenge = wrong.challenge { ended(challenge, .wrongCode) }
        if counted.locked {
            metrics.lockedCodes()
            log.warning(
                "codes.locked",
                [.website: website.name, .user: wrong.user.text, .challenge: wrong.challenge?.text])
            scheduleWebhooks()
            for challenge in counted.open { await goOnWithoutCodes(challenge, of: wrong.user) }
        }
        return true
    }

    /// Continues an open challenge after codes were locked. A phone can still answer it. If the
    /// user has no phone that can, the challenge ends.
    private func goOnWithoutCodes(_ challenge: ChallengeID, of user: UserID) async {
        do throws(Refusal) {
            guard let row = try await cascade(challenge) else { return }
            let policy = try policy(row.policy, of: challenge)
            if policy.answers == .website || Cascade(factors: policy.factors).canAnswer(means(of: row)) {
                await advance(challenge, because: .undeliverable)
                return
            }
            let now = time.now()
            let found = try await withStore("challenge") { () async throws(StoreFailure) in
                try await store.challenge(challenge, of: user)
            }
            guard let life = try? found?.life.after(.giveUp(.locked), at: now) else { return }
            let closing = ChallengeEnd(challenge: challenge, life: life, event: "challenge.ended", at: now)
            _ = try await end(closing, as: operations.new())
        } catch {
            // The challenge then ends at its expiry, and accepts no code before.
            log.notice("challenge.without_codes", [.challenge: challenge.text, .error: "\(error)"])
        }
    }
}
