import Domain
import Log
import World

/// A website's request to open a challenge for one user (the verb Ask).
///
/// The beginning of a challenge. `Relay.login` reads the user, plans the whole challenge, and
/// stores it with one script. That script also writes the outbox entries for the pushes, the expiry
/// and the next factor. Only then does the relay send.
///
/// Invariants: the ids follow from the operation, so a repetition finds the stored challenge
/// instead of opening a second one. Nonce and number are drawn at random, and the stored ones
/// count. The policy and the context are copied into the challenge, so later changes of settings do
/// not affect it. `expiresAt` is fixed here and never moves. From that moment the challenge reads
/// as expired (`ChallengeLife.seen`), even if no relay has recorded the expiry yet. The life is
/// asked → sent → one of the ends, and an end never changes. A challenge may begin with an end. The
/// reason is `undeliverable` if no factor can answer it, and `locked` if codes are locked and no
/// phone can answer. If the user is locked, frozen or disabled, that state is the reason.
/// If the user has expired, the reason is `user_expired`.
///
/// A new challenge supersedes the user's open ones. But a login from an unknown browser supersedes
/// none from a known browser.
///
/// Failure modes: a relay may die after the commit. Another relay then notices that its heartbeat
/// stands still, releases the pushes and sends them. A second run of the same operation must not
/// count or push again. So a run counts and pushes only if the stored expiry is the planned one. A
/// flood of logins costs only reads, because the limit is checked before anything is written.
///
/// Tested in `LoginTests.swift`, `ChallengeEndTests.swift`, `KnownLoginTests.swift` and
/// `LimitTests.swift`; the life itself in `ChallengeLifeTests.swift`.
public struct LoginRequest: Sendable {
    public var subject: Subject
    /// The username; if the request has a token too, both must name the same user.
    public var username: String?
    public var request: String?
    public var number: String?
    public var ip: String?
    public var userAgent: String?
    public var service: String?
    public var action: String?
    public var details: [Context.Detail]
    /// The lifetime of the challenge in seconds; nil for the policy's lifetime.
    public var expiresIn: Int?
    /// The factors of the policy that may be used; nil for all of them.
    public var factors: [Factor]?
    /// The least assurance that the login must have, if it is higher than the policy's.
    public var minAssurance: Assurance?
    /// Whether the website knows the browser as this user's. It decides which budget of logins
    /// counts, and never affects the counts of wrong numbers and codes.
    public var isKnown: Bool
    /// The trace of the website's request. The webhook about the end carries it on.
    public var trace: TraceParent?
    /// For an approval: the digest of the change that the user approves; otherwise nil.
    var approves: [UInt8]?
    /// For an approval of a new phone: the phone that is to be bound; otherwise nil.
    var device: DeviceID?
    /// Whether a temporary code of the help desk may approve it.
    var takesOperator = false
    /// Whether the limits of logins and pushes do not apply.
    var isUnlimited = false
    /// Whether it must disturb no login of the user.
    var isReminder = false
    /// Whether it was counted in the website's limits before.
    public var isCounted = false

    var origin: AskOrigin { isReminder ? .reminder : isKnown ? .knownBrowser : .unknownBrowser }

    public init(
        subject: Subject, username: String? = nil, request: String? = nil, number: String? = nil, ip: String? = nil,
        userAgent: String? = nil,
        service: String? = nil, action: String? = nil, details: [Context.Detail] = [], expiresIn: Int? = nil,
        factors: [Factor]? = nil,
        minAssurance: Assurance? = nil, isKnown: Bool = false
    ) {
        self.subject = subject
        self.username = username
        self.request = request
        self.number = number
        self.ip = ip
        self.userAgent = userAgent
        self.service = service
        self.action = action
        self.details = details
        self.expiresIn = expiresIn
        self.factors = factors
        self.minAssurance = minAssurance
        self.isKnown = isKnown
    }
}

/// The website's answer to a login: a challenge that is open or has failed at once.
public struct OpenedChallenge: Sendable, Equatable {
    public let challenge: ChallengeID
    /// Whether the user has a bound phone.
    public let verified: Bool
    /// The number for the person to enter on the phone. It is nil if the policy asks for none, if
    /// no phone can answer, or if the challenge failed as `locked`, `frozen`, `disabled` or
    /// `user_expired`.
    public let number: String?
    /// The factor that has begun; nil if none has. The website may submit a recovery code in either
    /// case.
    public let factor: Factor?
    public let expiresAt: Timestamp
    /// Whether all codes of the user are refused, so that only a phone can answer.
    public let areCodesLocked: Bool
    /// The unfinished steps of the user's enrolment.
    public let missing: [EnrolmentStep]
}

/// The outcome of a login that claims its idempotency key.
public enum ClaimedLogin: Sendable {
    case opened(OpenedChallenge)
    /// The key must be claimed first; nothing is stored.
    ///
    /// - Parameter isCounted: whether the login was counted in the website's limits.
    case unclaimed(isCounted: Bool)
}

extension Relay {
    /// Opens a challenge for a user. A repetition of the same operation returns the stored
    /// challenge.
    public func login(
        _ request: LoginRequest, by website: Website, as operation: Operation
    ) async throws(Refusal) -> OpenedChallenge {
        // The operation of an approval follows from the change, so it may always have run.
        if !request.isUnlimited, !request.isCounted, request.approves == nil || !operation.mayHaveRun {
            try await takeLogin(of: website, as: operation)
        }
        let asked = try await prepared(request, by: website, as: operation, key: nil)
        // A flood costs only reads. An operation that may have run before is not refused here: its
        // challenge may be stored already, and then counts in the limit.
        if let blocker = asked.subject.limitedBy, !operation.mayHaveRun {
            throw limited(by: blocker, asked.subject, asked.website)
        }
        let outcome = try await withStore("login") { () async throws(StoreFailure) in
            try await store.ask(asked.plan.challenge, within: asked.limits, as: operation)
        }
        switch outcome {
        case .gone, .unclaimed: throw .notFound
        case .limited(let blocker): throw limited(by: blocker, asked.subject, asked.website)
        case .stored(let stored): return await self.asked(stored, by: asked)
        }
    }

    /// Opens a challenge for a user in the usual case, with one change that also claims the
    /// idempotency key and keeps the answer. In any other case it stores nothing: then `begin` must
    /// claim the key, and the other form of `login` opens the challenge or reports what prevents it.
    ///
    /// It throws only refusals that are not kept under a key: a limit of the website, and that the
    /// store is unavailable. A second attempt would meet them again.
    public func login(
        _ request: LoginRequest, by website: Website, as operation: Operation, keeping kept: IdempotentAnswer
    ) async throws(Refusal) -> ClaimedLogin {
        let asked: PreparedLogin
        do throws(Refusal) {
            asked = try await prepared(request, by: website, as: operation, key: kept.request)
        } catch .unavailable {
            throw .unavailable
        } catch {
            return .unclaimed(isCounted: false)
        }
        guard !asked.subject.isKeyUsed, asked.subject.limitedBy == nil, asked.plan.isKnownBefore else {
            return .unclaimed(isCounted: false)
        }
        try await takeLogin(of: website, as: operation)
        let claim = claim(kept, at: asked.plan.challenge.askedAt) { self.opened(asked, $0) }
        do throws(Refusal) {
            let outcome = try await withStore("login") { () async throws(StoreFailure) in
                try await store.ask(asked.plan.challenge, within: asked.limits, claiming: claim, as: operation)
            }
            guard case .stored(let stored) = outcome else { return .unclaimed(isCounted: true) }
            return .opened(await self.asked(stored, by: asked))
        } catch .unavailable {
            throw .unavailable
        } catch {
            return .unclaimed(isCounted: true)
        }
    }

    /// A login that is ready to be stored.
    private struct PreparedLogin: Sendable {
        let subject: AskSubject
        /// The website with the policy for this user.
        let website: Website
        let limits: AskLimits
        let plan: Plan
    }

    private func prepared(
        _ request: LoginRequest, by website: Website, as operation: Operation, key: IdempotentRequest?
    ) async throws(Refusal) -> PreparedLogin {
        let now = time.now()
        let websitesLimits = limits(request, website.policy, at: now)
        let subject = try await withStore("login") { () async throws(StoreFailure) in
            try await store.subject(request.subject, of: website.id, within: websitesLimits, key: key)
        }
        guard let subject else { throw .notFound }
        let website = try self.website(website, withPolicyOf: subject)
        // Compare bytes, as the store does: Swift treats different encodings of a character as
        // equal.
        if let name = request.username, !name.utf8.elementsEqual(subject.username.utf8) {
            throw .conflict([
                FieldFault(
                    "username", .mismatch,
                    LocalizedText("names another user than token", de: "nennt einen anderen Benutzer als token"))
            ])
        }
        return PreparedLogin(
            subject: subject, website: website, limits: limits(request, website.policy, at: now),
            plan: try plan(request, about: subject, by: website, at: now, as: operation))
    }

    /// Returns the website with the policy for this user: its own, changed by that of the user's
    /// group. If the latter cannot be read, no challenge is opened.
    private func website(_ website: Website, withPolicyOf subject: AskSubject) throws(Refusal) -> Website {
        guard let changes = subject.policy else { return website }
        do throws(Policy.Fault) {
            return Website(
                id: website.id, name: website.name, displayName: website.displayName,
                policy: try website.policy.changed(by: changes))
        } catch {
            log.error("user.policy", [.website: website.name, .user: subject.user.text, .reason: error.message])
            throw .broken
        }
    }

    private func limits(_ request: LoginRequest, _ policy: Policy, at now: Timestamp) -> AskLimits {
        guard request.isUnlimited else { return limits(policy, request.origin, at: now) }
        return AskLimits(
            since: now - Policy.limitWindow, logins: Policy.loginLimits.upperBound * 10,
            pushes: Policy.loginLimits.upperBound * 10, origin: request.origin)
    }

    func limits(_ policy: Policy, _ origin: AskOrigin, at now: Timestamp) -> AskLimits {
        AskLimits(
            since: now - Policy.limitWindow, logins: policy.loginLimit, pushes: policy.pushLimit, origin: origin)
    }

    /// Does what follows after the challenge was stored: logs, wakes held requests, and starts
    /// deliveries.
    private func asked(_ stored: StoredChallenge, by login: PreparedLogin) async -> OpenedChallenge {
        let (plan, subject, website) = (login.plan, login.subject, login.website)
        let challenge = plan.challenge
        var factor = stored.factor
        // A message begins in a separate change, which a repetition finds done.
        if plan.beginsWithMessage, factor == nil, !stored.life.state.isEnd {
            factor = await advance(challenge.id, because: .asked)
        }
        if plan.isPushDown, !stored.pushes.isEmpty {
            factor = await begin(beside: plan.pushes, of: challenge.id) ?? factor
        }
        log.info(
            "challenge.asked",
            [
                .website: website.name, .user: subject.user.text, .challenge: challenge.id.text,
                .factor: factor?.rawValue ?? "none", .reason: stored.life.reason?.rawValue,
            ])
        for superseded in stored.superseded { heldRequests.fire(.challenge(superseded)) }
        if stored.life.state.isEnd { scheduleWebhooks() } else { heldRequests.fire(.user(subject.user)) }
        // If the expiry differs, an earlier run of this operation stored the challenge. Its pushes
        // are in the outbox, or were sent long ago, so nothing is counted or sent here.
        if stored.life.expiresAt == challenge.life.expiresAt {
            count(stored, beganWith: stored.factor ?? factor, wasToPush: !plan.pushes.isEmpty)
            usage.count(\.logins, of: website.id, website.name, at: challenge.askedAt)
            usage.count(\.pushes, stored.pushes.count, of: website.id, website.name, at: challenge.askedAt)
            for superseded in stored.superseded { ended(superseded, .superseded) }
            for push in plan.pushes where stored.pushes.contains(push.id) { send(push) }
        }
        return opened(login, stored, factor)
    }

    /// The answer to the website.
    private func opened(_ login: PreparedLogin, _ stored: StoredChallenge, _ factor: Factor?) -> OpenedChallenge {
        let subject = login.subject
        let isRefused = [.locked, .frozen, .disabled, .userExpired].contains(stored.life.reason)
        // Without a phone there is nowhere to enter the number. The challenge keeps it, so that a
        // phone that is bound meanwhile cannot approve without it.
        let isShown = !isRefused && !subject.phones.isEmpty && login.plan.takesPhones
        return OpenedChallenge(
            challenge: login.plan.challenge.id, verified: !subject.phones.isEmpty,
            number: isShown ? stored.number : nil, factor: factor, expiresAt: stored.life.expiresAt,
            areCodesLocked: subject.areCodesLocked,
            missing: subject.enrolment.missing(under: login.website.policy))
    }

    /// The answer to the website, if the challenge is stored as it is planned.
    private func opened(_ login: PreparedLogin, _ factor: Factor?) -> OpenedChallenge {
        let challenge = login.plan.challenge
        let stored = StoredChallenge(
            life: challenge.life, number: challenge.number, factor: factor, pushes: [], superseded: [])
        return opened(login, stored, factor)
    }

    private func limited(by blocker: Timestamp, _ subject: AskSubject, _ website: Website) -> Refusal {
        metrics.reached(.login)
        log.notice("login.limited", [.website: website.name, .user: subject.user.text])
        return .limited(retryAfter: blocker + Policy.limitWindow - time.now())
    }

    private func count(_ stored: StoredChallenge, beganWith factor: Factor?, wasToPush: Bool) {
        metrics.asked(factor)
        if stored.life.state.isEnd {
            metrics.ended(stored.life.reason, nil)
        } else if wasToPush, stored.pushes.isEmpty {
            metrics.reached(.push)
        }
    }

    /// A challenge that is to be stored, and what the relay does when it is stored.
    private struct Plan {
        let challenge: NewChallenge
        let pushes: [Push]
        let beginsWithMessage: Bool
        /// Whether the next factor begins beside the pushes.
        let isPushDown: Bool
        /// Whether a phone may answer.
        let takesPhones: Bool

        /// Whether the answer is known before the challenge is stored.
        var isKnownBefore: Bool { !beginsWithMessage && !isPushDown && !challenge.life.state.isEnd }
    }

    /// Returns the new challenge with its pushes. The ids follow from the operation. Nonce and
    /// number are drawn at random; if an earlier run stored the challenge, the stored ones count.
    private func plan(
        _ request: LoginRequest, about subject: AskSubject, by website: Website, at now: Timestamp,
        as operation: Operation
    ) throws(Refusal) -> Plan {
        let policy = website.policy
        let digits = policy.numberDigits(for: request.details)
        if let number = request.number, number.utf8.count != digits {
            let message =
                digits == 0
                ? LocalizedText(
                    "must be left out under this policy", de: "muss nach dieser Richtlinie entfallen")
                : LocalizedText("must have \(digits) digits", de: "muss \(digits) Ziffern haben")
            throw .invalid([FieldFault("number", .length, message)])
        }
        let expiresAt = now + .seconds(request.expiresIn ?? policy.lifetime)
        let number = digits == 0 ? nil : request.number ?? randomness.digits(digits)
        let place = request.ip.flatMap { locate($0) }
        let context = Context(
            website: website.name, displayName: website.displayName, username: subject.username,
            service: request.service, action: request.action, details: request.details, ip: request.ip,
            place: place, userAgent: request.userAgent, request: request.request, numberDigits: digits,
            device: request.device?.text, createdAt: now, expiresAt: expiresAt)
        let id: ChallengeID = operation.identifier("challenge")
        let means = means(phones: subject.phones, codes: subject.areCodesLocked ? [] : subject.codes)
        let narrowed = try narrowed(policy, by: request, asksNumber: digits > 0, means)
        let cascade = Cascade(factors: narrowed.factors)
        let first = cascade.first(means)
        var life = ChallengeLife(expiresAt: expiresAt)
        // A website that answers for its users needs no factor of this relay.
        if !cascade.canAnswer(means), policy.answers != .website,
            let over = try? life.after(
                .giveUp(subject.areCodesLocked && !subject.codes.isEmpty ? .locked : .undeliverable), at: now)
        {
            life = over
        }
        let pushes = pushes(
            to: first == .push ? affordable(pushable(subject.phones), by: website.limited) : [], of: id,
            user: subject.user, by: website.displayName, narrowed,
            showing: (request.service, request.ip, place), until: expiresAt, at: now, as: operation)
        let isSent = first?.isSent == true
        let challenge = NewChallenge(
            id: id, website: website.id, user: subject.user, life: life, policy: narrowed.json,
            context: context.bytes, nonce: randomness.bytes(16), number: number,
            approves: request.approves, language: operation.languages.message(stored: subject.language),
            trace: request.trace, otherwise: isSent ? nil : first == .push ? .pull : first,
            pushes: pushes.map { entry(for: $0, at: now) }, expiry: operation.identifier("expiry"),
            next: first.flatMap { next(after: $0, cascade, means, narrowed, at: now, operation) }, askedAt: now)
        return Plan(
            challenge: challenge, pushes: pushes, beginsWithMessage: isSent,
            isPushDown: isPushDown(pushes, of: subject.user, narrowed),
            takesPhones: narrowed.factors.contains(.push))
    }

    /// Returns the policy for this challenge, narrowed to what the request wants. For an approval,
    /// only the strongest factors remain.
    private func narrowed(
        _ policy: Policy, by request: LoginRequest, asksNumber: Bool, _ means: Cascade.AvailableFactors
    ) throws(Refusal) -> Policy {
        let wanted = policy.narrowed(to: request.factors, atLeast: nil, asksNumber: asksNumber)
        guard !wanted.factors.isEmpty else {
            let allowed = policy.factors.map(\.rawValue).joined(separator: ", ")
            throw .invalid([
                FieldFault(
                    "factors", .mismatch,
                    LocalizedText(
                        "has no factor that this website's policy allows with assurance "
                            + "\(wanted.minAssurance.rawValue): it allows \(allowed)",
                        de: "enthält keinen Faktor, den die Richtlinie dieser Website mit der Vertrauensstufe "
                            + "\(wanted.minAssurance.rawValue) erlaubt. Erlaubt sind: \(allowed)"))
            ])
        }
        let narrowed = policy.narrowed(to: request.factors, atLeast: request.minAssurance, asksNumber: asksNumber)
        guard !narrowed.factors.isEmpty else {
            let left = wanted.factors.map(\.rawValue).joined(separator: ", ")
            throw .invalid([
                FieldFault(
                    "min_assurance", .mismatch,
                    LocalizedText(
                        "is higher than the assurance of each of \(left) for this login",
                        de:
                            "ist höher als die Vertrauensstufe jedes Faktors, der bei dieser Anmeldung möglich ist: \(left)"
                    ))
            ])
        }
        guard request.approves != nil else { return narrowed }
        return narrowed.strongest(of: means, takesOperator: request.takesOperator)
    }

    /// Returns the outbox entry that begins the next factor; nil if there is none. If the first
    /// factor needs a message, the entry begins that factor. This relay has the lease and begins it
    /// at once. If this relay dies before, another one begins it.
    private func next(
        after first: Factor, _ cascade: Cascade, _ means: Cascade.AvailableFactors, _ policy: Policy, at now: Timestamp,
        _ operation: Operation
    ) -> NewChallenge.NextFactor? {
        let id: OutboxEntryID = operation.identifier("next")
        if first.isSent { return NewChallenge.NextFactor(id: id, due: now + Self.lease, holder: self.id) }
        let tried = Cascade.CascadeStep(factor: first, state: .queued, at: now)
        guard cascade.next(after: [tried], means) != nil else { return nil }
        return NewChallenge.NextFactor(id: id, due: policy.deadline(of: first, from: now), holder: nil)
    }

    /// Returns the phones for which a push service would accept a push. The other phones can still
    /// poll for pending challenges.
    func pushable(_ phones: [AskSubject.Phone]) -> [AskSubject.Phone] {
        let canAsk = phones.contains { $0.hasKey }
        return phones.filter { push?.reaches($0.platform, pushToken: $0.pushToken, canAsk: canAsk) == true }
    }

    /// Returns the phones to which the website may send a push: all, or none. A phone that gets no
    /// push still finds the challenge when it polls.
    func affordable(_ phones: [AskSubject.Phone], by website: LimitedWebsite) -> [AskSubject.Phone] {
        phones.isEmpty || mayUse([.pushesDay], phones.count, by: website) ? phones : []
    }

    /// Returns the pushes to these phones, which begin now.
    func pushes(
        to phones: [AskSubject.Phone], of challenge: ChallengeID, user: UserID, by website: String, _ policy: Policy,
        showing shown: (service: String?, ip: String?, place: String?), until expiresAt: Timestamp, at now: Timestamp,
        as operation: Operation
    ) -> [Push] {
        phones.map { phone in
            Push(
                id: operation.identifier("push \(phone.id.text)"), challenge: challenge, user: user, device: phone.id,
                deviceToken: phone.pushToken, environment: phone.environment, detail: policy.pushDetail,
                website: website, service: shown.service, ip: shown.ip, place: shown.place, askedAt: now,
                expiresAt: expiresAt, deliverBy: Push.deliverBy(now, expiresAt, at: now))
        }
    }

    /// Returns the outbox entry of a push. The entry stays until the push is settled.
    func entry(for push: Push, at now: Timestamp) -> NewChallenge.PushEntry {
        NewChallenge.PushEntry(id: push.id, device: push.device, leasedUntil: now + Self.lease, holder: id)
    }
}
