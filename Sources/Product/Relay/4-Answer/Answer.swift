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
    /// Nil when the guard refused: it has an end already, its time is over (or not yet), or the phone may not answer any
    /// more.
    func close(_ closing: ChallengeEnd, as operation: Operation) async throws(StoreFailure) -> ChallengeEndResult?
    /// The challenge that this operation has closed; else the newest of those that the user had been asked by then.
    func challenge(of user: UserID, meantBy operation: OperationID, at: Timestamp)
        async throws(StoreFailure) -> ChallengeID?
    /// The phone as it is now, whatever its state; nil when it is gone.
    func eligibility(of device: DeviceID) async throws(StoreFailure) -> AnswerEligibility?
    /// Freezes the user for a report of fraud about a challenge that has another end. Nil when the phone may not say so,
    /// or when the challenge ended with such a report.
    func freeze(_ report: LateFraud, as operation: Operation) async throws(StoreFailure) -> ChallengeEndResult?
    /// Writes a refused decision down, once under the same operation.
    func recordRefusal(_ refused: RefusedDecision, as operation: Operation) async throws(StoreFailure)
    /// Makes a user in one of these states active, with no failures. False when it was in none of them.
    func unlock(_ user: UserID, from states: [UserState], by doer: ChangeAuthor, at: Timestamp, as operation: Operation)
        async throws(StoreFailure) -> Bool
}

/// A challenge as it stands in the store.
public struct ChallengeRow: Sendable, Equatable {
    public struct Step: Sendable, Equatable {
        public let factor: Factor
        public let state: StepState
        public let at: Timestamp
        /// Why nothing came of it.
        public let reason: String?

        public init(factor: Factor, state: StepState, at: Timestamp, reason: String? = nil) {
            self.factor = factor
            self.state = state
            self.at = at
            self.reason = reason
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
    public let decidedAt: Timestamp?
    /// The change that made it what it is.
    public let operation: OperationID
    public let steps: [Step]

    public init(
        id: ChallengeID, user: UserID, token: UserToken, life: ChallengeLife, policy: String, context: [UInt8],
        nonce: [UInt8], number: String?, factor: Factor?, proof: Proof?, device: DeviceID?, receipt: String?,
        uv: UserVerification?, approves: [UInt8]?, decidedAt: Timestamp?,
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
        self.decidedAt = decidedAt
        self.operation = operation
        self.steps = steps
    }
}

/// The end of a challenge, to be written if it has none.
public struct ChallengeEnd: Sendable {
    public let challenge: ChallengeID
    public let life: ChallengeLife
    public var factor: Factor?
    public var proof: Proof?
    /// The phone that answered; what is known of it must still be true when this is written.
    public var device: PhoneCredential?
    /// What that phone signed.
    public var receipt: String?
    public var uv: UserVerification?
    /// The code that the website handed in; what is known of it must still be true.
    public var code: UsedCode?
    /// Of an answer with a wrong number: with how many failures of its phone the user is locked.
    public var guesses: Int?
    /// What log and audit call it.
    public let event: StaticString
    public let at: Timestamp

    public init(
        challenge: ChallengeID, life: ChallengeLife, factor: Factor? = nil, proof: Proof? = nil,
        device: PhoneCredential? = nil, receipt: String? = nil, uv: UserVerification? = nil, code: UsedCode? = nil,
        guesses: Int? = nil, event: StaticString, at: Timestamp
    ) {
        self.challenge = challenge
        self.life = life
        self.factor = factor
        self.proof = proof
        self.device = device
        self.receipt = receipt
        self.uv = uv
        self.code = code
        self.guesses = guesses
        self.event = event
        self.at = at
    }
}

/// What came of an end beside itself.
public struct ChallengeEndResult: Sendable, Equatable {
    /// What it made of its user: locked or frozen.
    public let became: UserState?
    /// Other challenges that ended with that.
    public let others: [ChallengeID]

    public init(became: UserState?, others: [ChallengeID]) {
        self.became = became
        self.others = others
    }
}

/// What decides whether a phone may answer now.
public struct AnswerEligibility: Sendable, Equatable {
    public let device: DeviceState
    public let user: UserState
    public let failures: Int
    public let failedAt: Timestamp?

    public init(device: DeviceState, user: UserState, failures: Int, failedAt: Timestamp?) {
        self.device = device
        self.user = user
        self.failures = failures
        self.failedAt = failedAt
    }
}

extension Relay {
    /// The website does not want an answer any more. A challenge that has its end keeps it, and that is no error.
    public func cancel(_ challenge: ChallengeID, by website: Website) async throws(Refusal) {
        let row = try await withStore("cancel") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        guard let row else { throw .notFound }
        let now = time.now()
        guard let life = try? row.life.after(.cancel, at: now) else { return }
        let closing = ChallengeEnd(challenge: challenge, life: life, event: "challenge.cancelled", at: now)
        _ = try await end(closing, as: operations.new())
    }

    /// Writes an end down and wakes who waits for it. False when somebody else was first.
    func end(_ closing: ChallengeEnd, as operation: Operation) async throws(Refusal) -> Bool {
        let closed: ChallengeEndResult?
        do throws(Refusal) {
            closed = try await withStore("close") { () async throws(StoreFailure) in
                try await store.close(closing, as: operation)
            }
        } catch {
            // It may be written all the same: whoever waits looks for himself.
            heldRequests.fire(.challenge(closing.challenge))
            throw error
        }
        guard let closed else { return false }
        metrics.ended(closing.life.reason, closing.proof)
        log.info(
            closing.event,
            [
                .challenge: closing.challenge.text, .outcome: closing.life.result.rawValue,
                .reason: closing.life.reason?.rawValue ?? "none",
            ])
        heldRequests.fire(.challenge(closing.challenge))
        scheduleWebhooks()
        if let phone = closing.device {
            follow(closed, closing.challenge, of: phone.user, phone.website.name, by: phone.id)
        }
        return true
    }

    /// What an answer did beside ending its challenge. Where its user is asked no more, an operator wants to see that.
    ///
    /// - Parameter device: the phone that answered; nil where a code did.
    func follow(
        _ closed: ChallengeEndResult, _ challenge: ChallengeID, of user: UserID, _ website: String, by device: DeviceID?
    ) {
        if let state = closed.became {
            metrics.barred(state)
            let event: StaticString = state == .frozen ? "user.frozen" : "user.locked"
            log.warning(
                event,
                [
                    .website: website, .user: user.text, .device: device?.text,
                    .challenge: challenge.text,
                ])
        }
        let reason: Reason = closed.became == .frozen ? .frozen : .locked
        for other in closed.others { ended(other, reason) }
        scheduleWebhooks()
    }

    /// A challenge ended with something else than an answer of its own.
    func ended(_ challenge: ChallengeID, _ reason: Reason) {
        metrics.ended(reason, nil)
        log.info("challenge.ended", [.challenge: challenge.text, .reason: reason.rawValue])
        heldRequests.fire(.challenge(challenge))
        scheduleWebhooks()
    }

    func policy(of row: ChallengeRow) throws(Refusal) -> Policy { try policy(row.policy, of: row.id) }

    func policy(_ json: String, of challenge: ChallengeID) throws(Refusal) -> Policy {
        do {
            return try settings.policy.changed(by: json)
        } catch {
            log.error("challenge.policy", [.challenge: challenge.text, .reason: error.message])
            throw .broken
        }
    }

    /// The newest challenge of a user of this website; nil when nothing was asked. For an operation that may have run
    /// it is the one that was the newest then: what was asked since is not what the website answers.
    func newest(
        _ token: UserToken, of website: Website, for operation: Operation? = nil
    ) async throws(Refusal) -> ChallengeRow? {
        let user = try await withStore("user") { () async throws(StoreFailure) in
            try await store.user(token: token, of: website.id)
        }
        guard let user else { throw .notFound }
        var newest = user.challenge
        if let operation, let begunAt = operation.begunAt {
            newest = try await withStore("challenge") { () async throws(StoreFailure) in
                try await store.challenge(of: user.id, meantBy: operation.id, at: begunAt)
            }
        }
        guard let challenge = newest else { return nil }
        let row = try await withStore("challenge") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        // The audit row that names the challenge is not signed.
        guard row?.user == user.id else { return nil }
        return row
    }

    /// The challenge that a website names itself, or that the token of its user names.
    func row(
        _ challenge: ChallengeID?, of token: UserToken?, _ website: Website, for operation: Operation
    ) async throws(Refusal) -> ChallengeRow? {
        guard let challenge else {
            guard let token else { throw Self.challengeMissing }
            return try await newest(token, of: website, for: operation)
        }
        let row = try await withStore("challenge") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        if let row { try agree(row, token) }
        return row
    }
}
