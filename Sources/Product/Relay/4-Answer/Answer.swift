import Bytes
import Domain
import Log
import World

/// The store operations of Answer: every challenge ends exactly once.
public protocol AnswerStore: Sendable {
    /// The challenge, if it belongs to that user.
    func challenge(_ id: ChallengeID, of user: UserID) async throws(StoreFailure) -> ChallengeRow?
    /// The challenge, if it belongs to that website.
    func challenge(_ id: ChallengeID, of website: WebsiteID) async throws(StoreFailure) -> ChallengeRow?
    /// Ends a challenge.
    ///
    /// - Returns: nil if the guard refused the change: the challenge has ended already, its
    ///   lifetime is over (or, for an expiry, not over yet), or the phone may not answer any more.
    func close(_ closing: ChallengeEnd, as operation: Operation) async throws(StoreFailure) -> ChallengeEndResult?
    /// The challenge that this operation ended. If there is none, the newest challenge that the
    /// user had at that time.
    func challenge(of user: UserID, meantBy operation: OperationID, at: Timestamp)
        async throws(StoreFailure) -> ChallengeID?
    /// The current state of the phone, even if it is not active; nil if the phone is gone.
    func eligibility(of device: DeviceID, at: Timestamp) async throws(StoreFailure) -> AnswerEligibility?
    /// Freezes the user after a report of fraud that does not answer its challenge.
    ///
    /// - Returns: nil if the phone may not report, or if the challenge ended with a report of
    ///   fraud. For a link also nil if the user is not frozen, because the report was made before and
    ///   the freeze was lifted.
    func freeze(_ report: LateFraud, as operation: Operation) async throws(StoreFailure) -> ChallengeEndResult?
    /// Records a refused decision, at most once for the same operation.
    func recordRefusal(_ refused: RefusedDecision, as operation: Operation) async throws(StoreFailure)
    /// Makes a user active and resets the failure counts.
    ///
    /// - Parameter lifted: the values before and after, for the audit.
    /// - Returns: false if the user was in none of these states.
    func unlock(
        _ user: UserID, from states: [UserState], lifting lifted: ChangedValues, by doer: ChangeAuthor, at: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> Bool
}

/// A challenge as it is stored.
public struct ChallengeRow: Sendable, Equatable {
    public struct Step: Sendable, Equatable {
        public let factor: Factor
        public let state: StepState
        public let at: Timestamp
        /// The reason why the step failed, or waits.
        public let reason: String?
        /// The attempts of a queued push; nil if they were not read.
        public let tries: Int?

        public init(factor: Factor, state: StepState, at: Timestamp, reason: String? = nil, tries: Int? = nil) {
            self.factor = factor
            self.state = state
            self.at = at
            self.reason = reason
            self.tries = tries
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
    /// The JWT that the phone signed.
    public let receipt: String?
    public let uv: UserVerification?
    /// The digest of what an approval permits; nil for a login.
    public let approves: [UInt8]?
    /// The trace of the request that opened the challenge; nil if it named none.
    public let trace: TraceParent?
    public let askedAt: Timestamp
    public let decidedAt: Timestamp?
    /// The operation of the last change.
    public let operation: OperationID
    public let steps: [Step]
    /// The phone's place in comparison with the login's; nil if they were not compared.
    public let place: PlaceComparison?
    /// The judgement of the phone's attestation and posture at the answer; nil if it was not
    /// judged.
    public let attested: AttestedAnswer?
    /// The facts about the page that has approved; nil for another phone.
    public let web: WebAnswer?

    public init(
        id: ChallengeID, user: UserID, token: UserToken, life: ChallengeLife, policy: String, context: [UInt8],
        nonce: [UInt8], number: String?, factor: Factor?, proof: Proof?, device: DeviceID?, receipt: String?,
        uv: UserVerification?, approves: [UInt8]?, trace: TraceParent?, askedAt: Timestamp, decidedAt: Timestamp?,
        operation: OperationID, steps: [Step], place: PlaceComparison? = nil, attested: AttestedAnswer? = nil,
        web: WebAnswer? = nil
    ) {
        self.web = web
        self.attested = attested
        self.place = place
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
        self.trace = trace
        self.askedAt = askedAt
        self.decidedAt = decidedAt
        self.operation = operation
        self.steps = steps
    }
}

/// The end of a challenge, which is written only if the challenge has no end yet.
public struct ChallengeEnd: Sendable {
    public let challenge: ChallengeID
    public let life: ChallengeLife
    public var factor: Factor?
    public var proof: Proof?
    /// The phone that answered. The write is refused if the phone's state or failure count has
    /// changed since it was read.
    public var device: PhoneCredential?
    /// The JWT that the phone signed.
    public var receipt: String?
    public var uv: UserVerification?
    /// The code that the website submitted. The write is refused if the factor or the user's
    /// failure count has changed since it was read.
    public var code: UsedCode?
    /// The user for whom the website approves, without a phone or a code. The write is refused if
    /// the user is no longer active.
    public var approvedFor: UserID?
    /// The number of the phone's failures at which the user is locked; set only if the answer has a
    /// wrong number.
    public var guesses: Int?
    /// The phone's place in comparison with the login's.
    public var place: PlaceComparison?
    /// The judgement of the phone's attestation and posture; nil if the policy asks for none. The
    /// write is refused if the attestation has changed since it was read.
    public var posture: JudgedPosture?
    /// The facts about the page that the phone is; nil for another phone.
    public var web: WebAnswer?
    /// The phone's PIN as it was judged; nil if the policy does without PINs. The write is refused
    /// if the PIN or its count has changed since it was read.
    public var pin: JudgedPIN?
    /// The event name in the log and the audit.
    public let event: StaticString
    public let at: Timestamp
    /// The time at which the website asked; set only for an answer.
    var askedAt: Timestamp?
    /// Whether the challenge is about a change, which may be a recovery.
    public var isApproval = false
    /// The recovery that a denied challenge asks about. A newer challenge may have taken its place
    /// in the row of the recovery, or its id may not be there yet.
    public var deniedRecovery: RecoveryID?

    public init(
        challenge: ChallengeID, life: ChallengeLife, factor: Factor? = nil, proof: Proof? = nil,
        device: PhoneCredential? = nil, receipt: String? = nil, uv: UserVerification? = nil, code: UsedCode? = nil,
        guesses: Int? = nil, place: PlaceComparison? = nil, posture: JudgedPosture? = nil, event: StaticString,
        at: Timestamp
    ) {
        self.place = place
        self.posture = posture
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

extension ChallengeEnd {
    /// The assertion over the receipt as it is stored: of App Attest, or of a page.
    public var assertion: String? { web?.stored ?? posture?.answer.assertion }
}

/// The further effects of an answer.
public struct ChallengeEndResult: Sendable, Equatable {
    /// The user's new state, locked or frozen; nil if it did not change.
    public let became: UserState?
    /// The user's other challenges that ended because of the new state.
    public let others: [ChallengeID]

    public init(became: UserState?, others: [ChallengeID]) {
        self.became = became
        self.others = others
    }
}

/// The state that decides whether a phone may answer now.
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
    /// Cancels a challenge for the website. If the challenge has ended already, its end stays, and
    /// this is no error.
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

    /// Writes the end of a challenge and wakes the requests that wait for it. Returns false if the
    /// challenge ended before.
    func end(_ closing: ChallengeEnd, as operation: Operation) async throws(Refusal) -> Bool {
        let closed: ChallengeEndResult?
        do throws(Refusal) {
            closed = try await withStore("endChallenge") { () async throws(StoreFailure) in
                try await store.close(closing, as: operation)
            }
        } catch {
            // The end may be written all the same. The held requests read the store and find out.
            heldRequests.fire(.challenge(closing.challenge))
            throw error
        }
        guard let closed else { return false }
        seen.forget(closing.challenge)
        metrics.ended(closing.life.reason, closing.proof)
        if let proof = closing.proof, let asked = closing.askedAt {
            metrics.logins.answered(proof, after: closing.at - asked)
        }
        if let place = closing.place { metrics.compared(place.check) }
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
            if closing.isApproval, closing.life.decision != .approve {
                await reportEndedRecoveries(
                    noted: operation.denialOfRecovery, of: phone.user, phone.website.name, .phone)
            }
            if closed.became == .frozen {
                await reportEndedRecoveries(by: operation, of: phone.user, phone.website.name, .fraud)
            }
        }
        return true
    }

    /// Reports the further effects of an answer. An operator wants to know when a user is locked or
    /// frozen.
    ///
    /// - Parameter device: the phone that answered; nil for an answer by code.
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

    /// Reports that a challenge ended for another reason than an answer to it.
    func ended(_ challenge: ChallengeID, _ reason: Reason) {
        metrics.ended(reason, nil)
        log.info("challenge.ended", [.challenge: challenge.text, .reason: reason.rawValue])
        heldRequests.fire(.challenge(challenge))
        scheduleWebhooks()
    }

    func policy(of row: ChallengeRow) throws(Refusal) -> Policy { try policy(row.policy, of: row.id) }

    func policy(_ json: String, of challenge: ChallengeID) throws(Refusal) -> Policy {
        do {
            return try policies.policy(changedBy: json)
        } catch {
            log.error("challenge.policy", [.challenge: challenge.text, .reason: error.message])
            throw .broken
        }
    }

    /// The newest challenge of a user of this website; nil if there is none. If the operation may
    /// have run before, it is the newest challenge of that time, because the website does not
    /// answer later challenges.
    func newest(
        _ token: UserToken, of website: Website, for operation: Operation? = nil
    ) async throws(Refusal) -> ChallengeRow? {
        let user = try await withStore("user") { () async throws(StoreFailure) in
            try await store.user(token: token, of: website.id, at: time.now())
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
        // The audit row that names the challenge is not signed, so its user is checked here.
        guard row?.user == user.id else { return nil }
        return row
    }

    /// The challenge that the website names itself, or the newest challenge of the user that the
    /// token names.
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
