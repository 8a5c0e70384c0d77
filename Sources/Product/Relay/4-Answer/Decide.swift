import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// An answer as a phone submits it.
public struct PhoneAnswer: Sendable, Equatable {
    /// Whether the answer came to `/success`; false for `/failure`.
    public var approves: Bool
    /// A signed decision, a `twoefay-decision+jwt`.
    public var signed: String?
    /// The number beside a plain answer. A signed decision contains the number itself.
    public var number: String?
    /// An assertion of App Attest over the signed decision, in base64url.
    public var assertion: String?
    /// The signature of the PIN's key over the signing input of the decision, in base64url.
    public var pinSignature: String?
    /// The object that a page sends as its assertion of WebAuthn over the signed decision.
    public var ownerAssertion: JSONValue?

    public init(
        approves: Bool, signed: String? = nil, number: String? = nil, assertion: String? = nil,
        pinSignature: String? = nil, ownerAssertion: JSONValue? = nil
    ) {
        self.ownerAssertion = ownerAssertion
        self.pinSignature = pinSignature
        self.approves = approves
        self.signed = signed
        self.number = number
        self.assertion = assertion
    }
}

/// The path of a phone's answer, from the request to the end of the challenge.
///
/// - `answer` reads the challenge of the phone's user. If its lifetime is over, the expiry is
///   written first.
/// - `read` checks the answer by the policy that the challenge was opened with. A signed decision
///   is checked by `SignedDecision`: the signature, the audience, the nonce, the context and the
///   challenge must all match. An answer by certificate needs the phone's certificate.
/// - `decide` checks what only an approval needs: an allowed factor, the user verification, the
///   attestation and posture of the phone, the delay after failures, the PIN, the number, and the
///   place of the phone if the policy refuses far ones. A denial or a report of fraud needs none of
///   them.
/// - `end` writes the end of the challenge. Its guards repeat what was read: the challenge is open,
///   its lifetime is not over, the phone is active and has the same failure counts.
///
/// Invariants: a challenge ends exactly once. If two answers race, one changes the row, and the
/// other gets `already_decided`. A refused answer changes nothing: it is only logged, counted and
/// recorded in the audit (`RefusedDecision.swift`). A wrong number ends the challenge and counts as
/// a failure in the same script.
///
/// Failures: something changes between the read and the write. `whyNotEnded` then reads again and
/// names the reason. If it is the phone's attestation, the answer is judged again. A report of fraud that comes too late still freezes the user
/// (`LateFraud.swift`).
///
/// Tests: `RelayTests/DecisionTests.swift`, `RefusedDecisionTests.swift`,
/// `UntimelyDecisionTests.swift`, `LateFraudTests.swift` and `LockTests.swift`.
extension Relay {
    /// Accepts a phone's answer in the form that the website's policy had when the challenge was
    /// opened.
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
        let content: Content
        do throws(DecisionRefusal) {
            content = try read(answer, about: row, policy, by: phone)
        } catch {
            throw await refused(error.fault, row.id, by: phone, as: refusal(error, answer, policy, phone))
        }
        return try await decide(row, content, policy, by: phone)
    }

    /// The content of an answer, after the check that it comes from the phone.
    private struct Content {
        let decision: Decision
        let number: String?
        let proof: Proof
        let receipt: String?
        /// The verification that counts; that of a page only with an assertion.
        var uv: UserVerification?
        var uvAge: Int?
        var place: CoarsePlace?
        var posture: ReportedPosture?
        /// An assertion of App Attest over the receipt, in base64url.
        var assertion: String?
        var pinSignature: String?
        var ownerAssertion: JSONValue?
        /// The facts about the page; nil for a native phone, and until it is judged.
        var web: WebAnswer?
    }

    private func read(
        _ answer: PhoneAnswer, about row: ChallengeRow, _ policy: Policy, by phone: PhoneCredential
    ) throws(DecisionRefusal) -> Content {
        switch policy.answers {
        case .signed:
            guard let signed = answer.signed, answer.number == nil else { throw .fault(.policy) }
            guard let key = try? P256PublicKey(x963: phone.publicKey) else {
                log.error("device.key", [.device: phone.id.text])
                throw .fault(.signature)
            }
            let decision = try SignedDecision(
                signed,
                about: SignedDecision.Subject(
                    audience: SignedDecision.audience(origin: settings.origin, website: phone.website.name),
                    device: phone.id, key: key, challenge: row.id, nonce: row.nonce, context: row.context,
                    asksNumber: row.number != nil, approves: answer.approves))
            return Content(
                decision: decision.decision, number: decision.number, proof: .signed, receipt: signed,
                uv: decision.uv, uvAge: decision.uvAge, place: decision.place, posture: decision.posture,
                assertion: answer.assertion, pinSignature: answer.pinSignature,
                ownerAssertion: answer.ownerAssertion)
        case .certificate:
            // The website will see that the answer was authenticated by a certificate.
            guard answer.signed == nil, phone.isCertified else { throw .fault(.policy) }
            if answer.approves, row.number != nil, answer.number == nil { throw .fault(.number) }
            return Content(
                decision: answer.approves ? .approve : .deny, number: answer.number, proof: .certificate,
                receipt: nil, uv: nil)
        case .website: throw .fault(.policy)
        }
    }

    private func refusal(
        _ refusal: DecisionRefusal, _ answer: PhoneAnswer, _ policy: Policy, _ phone: PhoneCredential
    ) -> Refusal {
        switch (refusal.fault, policy.answers) {
        case (.policy, .signed) where answer.signed == nil:
            .invalid([
                FieldFault(
                    "answer", .missing,
                    LocalizedText(
                        "must be given: this challenge's policy is answers: signed",
                        de: "fehlt: Die Richtlinie dieser Challenge ist answers: signed"))
            ])
        case (.policy, .signed):
            .invalid([
                FieldFault(
                    "number", .unknown,
                    LocalizedText("belongs inside the signed answer", de: "gehört in die signierte Antwort"))
            ])
        case (.policy, .certificate) where answer.signed == nil && !phone.isCertified:
            .forbidden(
                LocalizedText(
                    "This challenge's policy is answers: certificate. A plain answer requires the phone's "
                        + "certificate, and a DPoP proof is not enough",
                    de: "Die Richtlinie dieser Challenge ist answers: certificate. Eine einfache Antwort erfordert das "
                        + "Zertifikat des Telefons; ein DPoP-Nachweis genügt nicht"))
        case (.policy, let answers):
            .forbidden(
                LocalizedText(
                    "This challenge's policy is answers: \(answers.rawValue)",
                    de: "Die Richtlinie dieser Challenge ist answers: \(answers.rawValue)"))
        case (.number, .certificate):
            .invalid([
                FieldFault(
                    "number", .missing,
                    LocalizedText(
                        "must be given: this challenge requires a number",
                        de: "fehlt: Diese Challenge verlangt eine Zahl"))
            ])
        default: .invalid([FieldFault("answer", .mismatch, refusal.message)])
        }
    }

    /// Another approval of the phone may store its counter between the read and the write. Then the
    /// answer is judged once more, by the new counter.
    private func decide(
        _ row: ChallengeRow, _ content: Content, _ policy: Policy, by phone: PhoneCredential
    ) async throws(Refusal) -> ChallengeLife.Result {
        var content = content
        if content.decision == .approve {
            content.web = try await judgeOwner(
                receipt: content.receipt, assertion: content.ownerAssertion, of: row, by: phone)
            content.uv = content.uv?.counted(content.web)
        }
        for _ in 0..<2 {
            if let result = try await decided(row, content, policy, by: phone) { return result }
        }
        let unmet: PhoneDemands.Demand = content.assertion == nil ? .attestation : .assertion
        throw await refused(.posture, row.id, by: phone, as: .postureUnmet([unmet]))
    }

    /// Returns the result; nil if only the phone's attestation has changed since it was judged.
    ///
    /// - Parameter attempts: how often the answer may be judged again because others changed the
    ///   phone's PIN or its count.
    private func decided(
        _ row: ChallengeRow, _ content: Content, _ policy: Policy, by phone: PhoneCredential,
        attempts: Int = Relay.pinAttempts
    ) async throws(Refusal) -> ChallengeLife.Result? {
        let now = time.now()
        let approves = content.decision == .approve
        // A denial or a report of fraud is always accepted. The following checks are for approvals.
        let uv = content.uv ?? .none
        if approves, !policy.factors.contains(.push) {
            throw await refused(
                .policy, row.id, by: phone,
                as: Self.takesNoPhones(policy))
        }
        if approves, uv < policy.minUV {
            throw await refused(
                .verification, row.id, by: phone,
                as: .forbidden(
                    LocalizedText(
                        "The website requires user verification by \(policy.minUV.rawValue), signed as uv, and the "
                            + "answer has \(uv.rawValue). Nothing has changed: the phone may answer again",
                        de:
                            "Die Website verlangt eine Benutzerverifizierung durch \(policy.minUV.rawValue), signiert als uv, "
                            + "und die Antwort hat \(uv.rawValue). Es wurde nichts geändert: Das Telefon darf erneut "
                            + "antworten")))
        }
        if approves, policy.minAssurance == .high, content.web?.isApart == false {
            throw await refused(.verification, row.id, by: phone, as: Self.servedByRelay)
        }
        if approves, let refusal = Self.refusal(uv, age: content.uvAge, policy) {
            throw await refused(.verification, row.id, by: phone, as: refusal)
        }
        let posture =
            approves
            ? try await judgePosture(
                row, policy, reported: content.posture, receipt: content.receipt, assertion: content.assertion,
                by: phone) : nil
        if approves, let wait = FailureDelay.wait(after: phone.failures, lastAt: phone.failedAt, at: now) {
            throw await refused(.limited, row.id, by: phone, as: .limited(retryAfter: wait))
        }
        let pin =
            approves
            ? try await judgePIN(
                row, policy, receipt: content.receipt, signature: content.pinSignature, by: phone) : nil
        let matches = !approves || isRight(content.number, for: row)
        let place = content.proof == .signed ? compare(content.place, row, policy) : nil
        let isRefused = approves && matches && place?.isRefused(by: policy) == true
        let life: ChallengeLife
        do {
            life = try row.life.after(
                isRefused ? .refusePlace : .answer(content.decision, numberMatches: matches), at: now)
        } catch {
            throw try await tooLate(try await settled(row), content, by: phone)
        }
        var closing = ChallengeEnd(
            challenge: row.id, life: life, factor: row.phoneFactor, proof: content.proof, device: phone,
            receipt: content.receipt, uv: content.uv, guesses: matches ? nil : policy.guesses,
            place: place, posture: posture, event: "challenge.answered", at: now)
        closing.askedAt = row.askedAt
        closing.isApproval = row.approves != nil
        if !approves { closing.deniedRecovery = await recovery(askedBy: row, of: phone.user, at: now) }
        closing.pin = pin
        closing.web = content.web
        if try await end(closing, as: operations.new()) { return life.result }
        if attempts > 0, let phone = try await self.phone(phone, judged: pin) {
            return try await decided(row, content, policy, by: phone, attempts: attempts - 1)
        }
        guard let refusal = try await whyNotEnded(row, content, posture?.relied, by: phone) else { return nil }
        throw refusal
    }

    /// Compares the place of the phone with that of the login; nil if the policy ignores it.
    private func compare(_ place: CoarsePlace?, _ row: ChallengeRow, _ policy: Policy) -> PlaceComparison? {
        guard policy.phonePlace != .ignore else { return nil }
        let distance = place.flatMap { place in Context.ip(in: row.context).flatMap { self.distance($0, place) } }
        return PlaceComparison(distance: distance, by: policy)
    }

    private static func takesNoPhones(_ policy: Policy) -> Refusal {
        let factors = policy.factors.map(\.rawValue).joined(separator: ", ")
        return .forbidden(
            LocalizedText(
                "This challenge accepts no phone's approval: it allows \(factors)",
                de: "Diese Challenge nimmt keine Bestätigung eines Telefons an. Erlaubt sind: \(factors)"))
    }

    private static let servedByRelay = Refusal.forbidden(
        LocalizedText(
            "The website requires the assurance high. A page has it only if it has named its origin, and no host of the "
                + "relay serves it. Nothing has changed: another phone may answer",
            de:
                "Die Website verlangt das Vertrauensniveau high. Eine Seite hat es nur, wenn sie ihren Ursprung genannt hat "
                + "und nicht von einem Host des Relays kommt. Es wurde nichts geändert: Ein anderes Telefon darf antworten"
        ))

    private func isRight(_ number: String?, for row: ChallengeRow) -> Bool {
        guard let right = row.number else { return true }
        return Secret.matches(Array((number ?? "").utf8), Array(right.utf8))
    }

    /// The reason why the end was not written: something changed between the read and the write. It is
    /// nil if only the attestation can have changed, on which the approval relied.
    private func whyNotEnded(
        _ row: ChallengeRow, _ content: Content, _ relied: JudgedPosture.Relied?, by phone: PhoneCredential
    ) async throws(Refusal) -> Refusal? {
        let found = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.challenge(row.id, of: row.user)
        }
        guard let found else { return await refused(.unknown, nil, by: phone, as: .notFound) }
        let ended = try await settled(found)
        if ended.life.state.isEnd { return try await tooLate(ended, content, by: phone) }
        let standing = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.eligibility(of: phone.id, at: time.now())
        }
        // A phone is not told why it may not answer: that is between the website and its user.
        guard let standing, standing.device == .active, standing.user == .active else {
            return await refused(.revoked, row.id, by: phone, as: .unauthenticated)
        }
        if relied != nil, standing.failures == phone.failures { return nil }
        // Another wrong number of this phone came in between, or its failures were reset. The phone
        // may send the same answer again.
        let wait = FailureDelay.wait(after: standing.failures, lastAt: standing.failedAt, at: time.now())
        return await refused(.limited, row.id, by: phone, as: .limited(retryAfter: wait ?? .zero))
    }

    /// The refusal of an answer to a challenge that has ended.
    ///
    /// - Parameter said: the content of the answer; nil if the answer is invalid.
    private func tooLate(
        _ row: ChallengeRow, _ content: Content?, by phone: PhoneCredential
    ) async throws(Refusal) -> Refusal {
        if content?.decision == .fraud { try await freezeOnLateReport(fraud: row, by: phone) }
        return await refused(
            row.life.state == .expired ? .late : .decided, row.id, by: phone,
            as: .alreadyDecided(result: row.life.result.rawValue))
    }

    /// Accepts a website's answer for its own user, in the original form. If the website names only
    /// the user, the newest challenge is meant, which may be another than the website expects.
    /// Therefore the website should name the challenge.
    public func answer(
        _ challenge: ChallengeID?, of token: UserToken?, _ decision: Decision, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> ChallengeLife.Result {
        // The user has no challenge, so there is nothing to answer.
        guard let asked = try await self.row(challenge, of: token, website, for: operation) else { throw .notFound }
        let row = try await settled(asked)
        guard try policy(of: row).answers == .website else {
            throw .forbidden(
                LocalizedText(
                    "This challenge's policy does not let the website answer for the user",
                    de: "Die Richtlinie dieser Challenge erlaubt der Website nicht, für den Benutzer zu antworten"))
        }
        let policy = try policy(of: row)
        if decision == .approve, !policy.factors.contains(.push) { throw Self.takesNoPhones(policy) }
        let now = time.now()
        // The same request came again because its first answer was lost.
        if row.life.state.isEnd, row.operation == operation.id { return row.life.result }
        let life: ChallengeLife
        do {
            life = try row.life.after(.answer(decision, numberMatches: true), at: now)
        } catch {
            throw .alreadyDecided(result: try await settled(row).life.result.rawValue)
        }
        var closing = ChallengeEnd(
            challenge: row.id, life: life, factor: row.phoneFactor, proof: .website, event: "challenge.answered",
            at: now)
        closing.askedAt = row.askedAt
        if decision == .approve { closing.approvedFor = row.user }
        if try await end(closing, as: operation) { return life.result }
        let ended = try await withStore("answer") { () async throws(StoreFailure) in
            try await store.challenge(row.id, of: row.user)
        }
        let found = try await settled(ended ?? row)
        // A lock ends the challenges of its user, so a challenge that is still open is one of a
        // user who has expired.
        guard found.life.state.isEnd else { throw .userExpired }
        throw .alreadyDecided(result: found.life.result.rawValue)
    }
}

extension ChallengeRow {
    /// The factor of a phone's answer: push or pull, even if that step has already expired.
    fileprivate var phoneFactor: Factor {
        steps.last { !$0.factor.isCode }?.factor ?? (steps.isEmpty ? factor ?? .push : .pull)
    }
}
