import Bytes
import Domain
import Log
import World

/// Answer: a challenge gets its end, exactly once.
public protocol AnswerStore: Sendable {
    /// The challenge, if it is one of that user's.
    func challenge(_ id: ChallengeID, of user: UserID) async throws(StoreFailure) -> ChallengeRow?
    /// The challenge, if it is one of that website's.
    func challenge(_ id: ChallengeID, of website: WebsiteID) async throws(StoreFailure) -> ChallengeRow?
    /// False when the guard refused: it has an end already, its time is over (or not yet), or the phone is not active
    /// any more.
    func close(_ closing: Closing, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Counts a wrong code. False when the guesses are used up or the challenge has its end.
    func countGuess(_ challenge: ChallengeID, limit: Int, at: Timestamp, as operation: Operation)
        async throws(StoreFailure) -> Bool
}

/// A challenge as it stands in the store.
public struct ChallengeRow: Sendable, Equatable {
    public struct Step: Sendable, Equatable {
        public let factor: Factor
        public let state: StepState
        public let at: Timestamp

        public init(factor: Factor, state: StepState, at: Timestamp) {
            self.factor = factor
            self.state = state
            self.at = at
        }
    }

    public let id: ChallengeID
    public let user: UserID
    public let token: UserToken
    public let life: ChallengeLife
    public let policy: String
    public let context: [UInt8]
    public let nonce: [UInt8]
    public let number: String?
    public let factor: Factor?
    public let proof: Proof?
    public let device: DeviceID?
    /// What that phone signed.
    public let receipt: String?
    public let uv: UserVerification?
    /// Of an approval: the digest of what it is for.
    public let approves: [UInt8]?
    public let guesses: Int
    public let decidedAt: Timestamp?
    /// The change that made it what it is.
    public let operation: OperationID
    public let steps: [Step]

    public init(
        id: ChallengeID, user: UserID, token: UserToken, life: ChallengeLife, policy: String, context: [UInt8],
        nonce: [UInt8], number: String?, factor: Factor?, proof: Proof?, device: DeviceID?, receipt: String?,
        uv: UserVerification?, approves: [UInt8]?, guesses: Int, decidedAt: Timestamp?,
        operation: OperationID, steps: [Step]
    ) {
        self.id = id
        self.user = user
        self.token = token
        self.life = life
        self.policy = policy
        self.context = context
        self.nonce = nonce
        self.number = number
        self.factor = factor
        self.proof = proof
        self.device = device
        self.receipt = receipt
        self.uv = uv
        self.approves = approves
        self.guesses = guesses
        self.decidedAt = decidedAt
        self.operation = operation
        self.steps = steps
    }
}

/// The end of a challenge, to be written if it has none.
public struct Closing: Sendable {
    public let challenge: ChallengeID
    public let life: ChallengeLife
    public var factor: Factor?
    public var proof: Proof?
    /// The phone that answered; it must still be active, and the key its own, when this is written.
    public var device: PhoneCredential?
    /// What log and audit call it.
    public let event: StaticString
    public let at: Timestamp

    public init(
        challenge: ChallengeID, life: ChallengeLife, factor: Factor? = nil, proof: Proof? = nil,
        device: PhoneCredential? = nil, event: StaticString, at: Timestamp
    ) {
        self.challenge = challenge
        self.life = life
        self.factor = factor
        self.proof = proof
        self.device = device
        self.event = event
        self.at = at
    }
}

extension Relay {
    /// A phone answers with its certificate.
    public func answer(
        _ challenge: ChallengeID, _ decision: Decision, number: String?, by phone: PhoneCredential
    ) async throws(Refusal) -> ChallengeLife.Result {
        let row = try await ask("answer") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: phone.user)
        }
        guard let row else { throw .notFound }
        guard try policy(of: row).answers == .certificate else {
            throw .forbidden("this challenge's policy does not take a phone's certificate for an answer")
        }
        // Denying needs no number: who says no must not have to look one up.
        let matches =
            decision != .approve || row.number == nil
            || number.map { Secret.matches(Array($0.utf8), Array((row.number ?? "").utf8)) } == true
        return try await decide(
            row, decision, numberMatches: matches, proof: .certificate, device: phone, as: operations.new())
    }

    /// The original's form: the website answers for its own user, whose newest challenge is meant.
    public func answer(
        token: UserToken, _ decision: Decision, by website: Website, as operation: Operation
    ) async throws(Refusal) -> ChallengeLife.Result {
        // Nothing was asked: there is nothing to answer.
        guard let row = try await newest(token, of: website) else { throw .notFound }
        guard try policy(of: row).answers == .website else {
            throw .forbidden("this challenge's policy does not take the website's word for an answer")
        }
        return try await decide(
            row, decision, numberMatches: true, proof: .website, device: nil, as: operation)
    }

    private func decide(
        _ row: ChallengeRow, _ decision: Decision, numberMatches: Bool, proof: Proof, device: PhoneCredential?,
        as operation: Operation
    ) async throws(Refusal) -> ChallengeLife.Result {
        let now = time.now()
        // The same request once more, after an answer that nobody saw.
        if row.life.state.isEnd, row.operation == operation.id { return row.life.result }
        let life: ChallengeLife
        do {
            life = try row.life.after(.answer(decision, numberMatches: numberMatches), at: now)
        } catch {
            throw .alreadyDecided(result: row.life.seen(at: now).result.rawValue)
        }
        let closing = Closing(
            challenge: row.id, life: life, factor: row.factor ?? .push, proof: proof, device: device,
            event: "challenge.answered", at: now)
        guard try await end(closing, as: operation) else {
            let ended = try await ask("answer") { () async throws(StoreFailure) in
                try await store.challenge(row.id, of: row.user)
            }
            throw .alreadyDecided(result: (ended ?? row).life.seen(at: now).result.rawValue)
        }
        return life.result
    }

    /// The website does not want an answer any more. A challenge that has its end keeps it, and that is no error.
    public func cancel(_ challenge: ChallengeID, by website: Website) async throws(Refusal) {
        let row = try await ask("cancel") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        guard let row else { throw .notFound }
        let now = time.now()
        guard let life = try? row.life.after(.cancel, at: now) else { return }
        let closing = Closing(challenge: challenge, life: life, event: "challenge.cancelled", at: now)
        _ = try await end(closing, as: operations.new())
    }

    /// A code that the user typed. No factor of this relay sends codes, so every code is a wrong one and counts.
    /// Where the website answers for its users, their token names the challenge.
    public func backup(
        _ challenge: ChallengeID?, of token: UserToken?, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Told {
        guard let row = try await row(challenge, of: token, website) else { throw .notFound }
        try agree(row, token)
        let now = time.now()
        let seen = row.life.seen(at: now)
        guard !seen.state.isEnd else { throw .alreadyDecided(result: seen.result.rawValue) }
        let limit = try policy(of: row).guesses
        let counted = try await ask("backup") { () async throws(StoreFailure) in
            try await store.countGuess(row.id, limit: limit, at: now, as: operation)
        }
        guard counted else { throw .limited(retryAfter: row.life.expiresAt - now) }
        guard let told = told(row) else { throw .notFound }
        return told
    }

    private func row(
        _ challenge: ChallengeID?, of token: UserToken?, _ website: Website
    ) async throws(Refusal) -> ChallengeRow? {
        guard let challenge else {
            guard website.policy.answers == .website, let token else { throw Self.challengeMissing }
            return try await newest(token, of: website)
        }
        return try await ask("backup") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
    }

    /// Writes an end down and wakes who waits for it. False when somebody else was first.
    func end(_ closing: Closing, as operation: Operation) async throws(Refusal) -> Bool {
        let closed = try await ask("close") { () async throws(StoreFailure) in
            try await store.close(closing, as: operation)
        }
        guard closed else { return false }
        log.info(
            closing.event,
            [
                .challenge: closing.challenge.text, .outcome: closing.life.result.rawValue,
                .reason: closing.life.reason?.rawValue ?? "none",
            ])
        waits.fire(.challenge(closing.challenge))
        return true
    }

    func policy(of row: ChallengeRow) throws(Refusal) -> Policy {
        do {
            return try settings.policy.changed(by: row.policy)
        } catch {
            log.error("challenge.policy", [.challenge: row.id.text, .reason: error.message])
            throw .broken
        }
    }

    /// The newest challenge of a user of this website; nil when nothing was asked.
    func newest(_ token: UserToken, of website: Website) async throws(Refusal) -> ChallengeRow? {
        let user = try await ask("user") { () async throws(StoreFailure) in
            try await store.user(token: token, of: website.id)
        }
        guard let user else { throw .notFound }
        guard let challenge = user.challenge else { return nil }
        return try await ask("challenge") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
    }
}
