import Bytes
import Crypto
import Domain
import Log
import World

/// What a phone hands in.
public struct PhoneAnswer: Sendable, Equatable {
    /// At /success, rather than at /failure.
    public var approves: Bool
    /// A `twoefay-decision+jwt`.
    public var signed: String?
    /// Beside a plain answer; a signed one holds its own.
    public var number: String?

    public init(approves: Bool, signed: String? = nil, number: String? = nil) {
        self.approves = approves
        self.signed = signed
        self.number = number
    }
}

extension Relay {
    /// A phone answers, in the form that was the website's policy when the challenge was asked.
    public func answer(
        _ challenge: ChallengeID, _ answer: PhoneAnswer, by phone: PhoneCredential
    ) async throws(Refusal) -> ChallengeLife.Result {
        let found = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: phone.user)
        }
        guard let found else { throw await refused(.unknown, nil, by: phone, as: .notFound) }
        let row = try await settled(found)
        let policy = try policy(of: row)
        guard !row.life.state.isEnd else {
            throw try await tooLate(row, try? read(answer, about: row, policy, by: phone), by: phone)
        }
        let said: Content
        do throws(DecisionFault) {
            said = try read(answer, about: row, policy, by: phone)
        } catch {
            throw await refused(error, row.id, by: phone, as: refusal(error, answer, policy, phone))
        }
        return try await decide(row, said, policy, by: phone)
    }

    /// What an answer says once it is known to be the phone's.
    private struct Content {
        let decision: Decision
        let number: String?
        let proof: Proof
        let receipt: String?
        let uv: UserVerification?
    }

    private func read(
        _ answer: PhoneAnswer, about row: ChallengeRow, _ policy: Policy, by phone: PhoneCredential
    ) throws(DecisionFault) -> Content {
        switch policy.answers {
        case .signed:
            guard let signed = answer.signed, answer.number == nil else { throw .policy }
            guard let key = try? P256PublicKey(x963: phone.publicKey) else {
                log.error("device.key", [.device: phone.id.text])
                throw .signature
            }
            let decision = try SignedDecision(
                signed,
                about: SignedDecision.Subject(
                    audience: SignedDecision.audience(origin: settings.origin, website: phone.website.name),
                    device: phone.id, key: key, challenge: row.id, nonce: row.nonce, context: row.context,
                    asksNumber: row.number != nil, approves: answer.approves))
            return Content(
                decision: decision.decision, number: decision.number, proof: .signed, receipt: signed,
                uv: decision.uv)
        case .certificate:
            // The website is told that there was a certificate.
            guard answer.signed == nil, phone.isCertified else { throw .policy }
            if answer.approves, row.number != nil, answer.number == nil { throw .number }
            return Content(
                decision: answer.approves ? .approve : .deny, number: answer.number, proof: .certificate,
                receipt: nil, uv: nil)
        case .website: throw .policy
        }
    }

    private func refusal(
        _ fault: DecisionFault, _ answer: PhoneAnswer, _ policy: Policy, _ phone: PhoneCredential
    ) -> Refusal {
        switch (fault, policy.answers) {
        case (.policy, .signed) where answer.signed == nil:
            .invalid([FieldFault("answer", .missing, "must be given: this challenge's policy is answers: signed")])
        case (.policy, .signed):
            .invalid([FieldFault("number", .unknown, "stands inside the answer where answers are signed")])
        case (.policy, .certificate) where answer.signed == nil && !phone.isCertified:
            .forbidden(
                "this challenge's policy is answers: certificate: a plain answer needs the phone's certificate, "
                    + "and a DPoP proof is none")
        case (.policy, let answers):
            .forbidden("this challenge's policy is answers: \(answers.rawValue)")
        case (.number, .certificate):
            .invalid([FieldFault("number", .missing, "must be given: this challenge asks for a number")])
        default: .invalid([FieldFault("answer", .mismatch, fault.message)])
        }
    }

    private func decide(
        _ row: ChallengeRow, _ said: Content, _ policy: Policy, by phone: PhoneCredential
    ) async throws(Refusal) -> ChallengeLife.Result {
        let now = time.now()
        let approves = said.decision == .approve
        // Whoever says no is always heard.
        let uv = said.uv ?? .none
        if approves, !policy.factors.contains(.push) {
            throw await refused(
                .policy, row.id, by: phone,
                as: .forbidden("this challenge takes no phone's word: the website asked for \(Self.named(policy))"))
        }
        if approves, uv < policy.minUV {
            throw await refused(
                .verification, row.id, by: phone,
                as: .forbidden(
                    "the website asks that the phone makes sure of its owner by \(policy.minUV.rawValue), and signs so; "
                        + "the answer says \(uv.rawValue). Nothing has changed: the phone may answer again"))
        }
        if approves, let wait = FailureDelay.wait(after: phone.failures, lastAt: phone.failedAt, at: now) {
            throw await refused(.limited, row.id, by: phone, as: .limited(retryAfter: wait))
        }
        let matches = !approves || isRight(said.number, for: row)
        let life: ChallengeLife
        do {
            life = try row.life.after(.answer(said.decision, numberMatches: matches), at: now)
        } catch {
            throw try await tooLate(try await settled(row), said, by: phone)
        }
        let closing = ChallengeEnd(
            challenge: row.id, life: life, factor: row.phoneFactor, proof: said.proof, device: phone,
            receipt: said.receipt, uv: said.uv, guesses: matches ? nil : policy.guesses,
            event: "challenge.answered", at: now)
        guard try await end(closing, as: operations.new()) else { throw try await whyNotEnded(row, said, by: phone) }
        return life.result
    }

    static func named(_ policy: Policy) -> String { policy.factors.map(\.rawValue).joined(separator: ", ") }

    private func isRight(_ number: String?, for row: ChallengeRow) -> Bool {
        guard let right = row.number else { return true }
        return Secret.matches(Array((number ?? "").utf8), Array(right.utf8))
    }

    /// Something changed between the reading and the writing.
    private func whyNotEnded(
        _ row: ChallengeRow, _ said: Content, by phone: PhoneCredential
    ) async throws(Refusal) -> Refusal {
        let found = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.challenge(row.id, of: row.user)
        }
        guard let found else { return await refused(.unknown, nil, by: phone, as: .notFound) }
        let ended = try await settled(found)
        if ended.life.state.isEnd { return try await tooLate(ended, said, by: phone) }
        let standing = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.eligibility(of: phone.id)
        }
        guard let standing, standing.device == .active, standing.user == .active else {
            return await refused(.revoked, row.id, by: phone, as: .unauthenticated)
        }
        // A wrong number of this phone came in between, or it was forgotten: the same answer once more is judged anew.
        let wait = FailureDelay.wait(after: standing.failures, lastAt: standing.failedAt, at: time.now())
        return await refused(.limited, row.id, by: phone, as: .limited(retryAfter: wait ?? .zero))
    }

    /// - Parameter said: what the answer would have said, if it is one.
    private func tooLate(
        _ row: ChallengeRow, _ said: Content?, by phone: PhoneCredential
    ) async throws(Refusal) -> Refusal {
        if said?.decision == .fraud { try await freezeOnLateReport(fraud: row, by: phone) }
        return await refused(
            row.life.state == .expired ? .late : .decided, row.id, by: phone,
            as: .alreadyDecided(result: row.life.result.rawValue))
    }

    /// The original's form: the website answers for its own user. Where it names the user alone, the newest challenge is
    /// meant, which need not be the one that it asked for this user: it does better to name the challenge.
    public func answer(
        _ challenge: ChallengeID?, of token: UserToken?, _ decision: Decision, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> ChallengeLife.Result {
        // Nothing was asked: there is nothing to answer.
        guard let found = try await self.row(challenge, of: token, website, for: operation) else { throw .notFound }
        let row = try await settled(found)
        guard try policy(of: row).answers == .website else {
            throw .forbidden("this challenge's policy does not take the website's word for an answer")
        }
        if decision == .approve, !(try policy(of: row).factors.contains(.push)) {
            throw .forbidden(
                "this challenge takes no phone's word: it asked for \(Self.named(try policy(of: row)))")
        }
        let now = time.now()
        // The same request once more, after an answer that nobody saw.
        if row.life.state.isEnd, row.operation == operation.id { return row.life.result }
        let life: ChallengeLife
        do {
            life = try row.life.after(.answer(decision, numberMatches: true), at: now)
        } catch {
            throw .alreadyDecided(result: try await settled(row).life.result.rawValue)
        }
        let closing = ChallengeEnd(
            challenge: row.id, life: life, factor: row.phoneFactor, proof: .website, event: "challenge.answered",
            at: now)
        if try await end(closing, as: operation) { return life.result }
        let ended = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.challenge(row.id, of: row.user)
        }
        throw .alreadyDecided(result: try await settled(ended ?? row).life.result.rawValue)
    }
}

extension ChallengeRow {
    /// By what a phone answers: also long after its push was left behind.
    fileprivate var phoneFactor: Factor {
        steps.last { !$0.factor.isCode }?.factor ?? (steps.isEmpty ? factor ?? .push : .pull)
    }
}
