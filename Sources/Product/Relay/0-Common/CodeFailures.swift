import Domain
import Log
import World

/// Wrong codes slow all codes of their user down, and lock them in the end. They are counted for
/// the user, across factors, challenges, relays and restarts.
public protocol CodeFailureStore: Sendable {
    /// Returns nil if the guards refused: the user has other failures than were read or is in
    /// another state, a factor has changed, or the challenge has ended.
    func countWrong(_ wrong: WrongCode, as operation: Operation) async throws(StoreFailure) -> CountedCode?
    /// Takes codes again, with no failures, by an approval that the user gave for that. False when
    /// that lock is over, or when the approval was used.
    func reopenCodes(_ reopening: CodeReopening, as operation: Operation) async throws(StoreFailure) -> Bool
}

/// A wrong code, and all factors that it could have been of.
public struct WrongCode: Sendable {
    /// More than a user can have: of each kind one that counts and one that waits.
    public static let mostFactors = 10
    /// What the audit calls it.
    public static let event = "code.wrong"

    public let user: UserID
    public let factors: [CodeFactor]
    /// The login that it was for.
    public let challenge: ChallengeID?
    /// In which state the user was; who is frozen may try recovery codes.
    public let state: UserState
    /// As it was read: nothing is counted where it is another by now.
    public let before: CodeLockout
    public let after: CodeLockout
    public let at: Timestamp

    /// - Parameter guesses: the number of wrong codes in a row that locks.
    public init(
        user: UserID, factors: [CodeFactor], challenge: ChallengeID?, state: UserState = .active,
        before: CodeLockout, guesses: Int, at: Timestamp
    ) {
        self.user = user
        self.factors = Array(factors.prefix(Self.mostFactors))
        self.challenge = challenge
        self.state = state
        self.before = before
        after = before.afterWrongCode(limit: guesses, at: at)
        self.at = at
    }
}

/// The outcome of counting a wrong code.
public struct CountedCode: Sendable, Equatable {
    /// It was the one that locked the user's codes.
    public let locked: Bool
    /// The user's open challenges then, where it did.
    public let open: [ChallengeID]

    public init(locked: Bool, open: [ChallengeID]) {
        self.locked = locked
        self.open = open
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
    /// False when something has changed since the factors were read: they are to be read again.
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

    /// Continues an open challenge after codes were locked. The phone can still answer it; if there
    /// is no phone that could, the challenge ends.
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
            // The challenge ends by its expiry then, and no code is taken for it.
            log.notice("challenge.without_codes", [.challenge: challenge.text, .error: "\(error)"])
        }
    }
}
