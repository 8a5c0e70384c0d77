import Domain
import Log
import World

public struct LoginRequest: Sendable {
    public var subject: Subject
    /// Given beside a token, it must be the name of the user that the token names.
    public var username: String?
    public var request: String?
    public var number: String?
    public var ip: String?
    public var userAgent: String?
    public var service: String?
    public var action: String?
    public var details: [Context.Detail]
    /// Seconds; the policy's lifetime where nil.
    public var expiresIn: Int?
    /// Of the policy's factors only these.
    public var factors: [Factor]?
    /// Where it is more than the policy's.
    public var minAssurance: Assurance?
    /// In which languages messages are for a user who has none: a tag, or a whole Accept-Language.
    public var language: String?
    /// The website knows the browser as this user's. It decides which budget of logins counts, and
    /// never touches guesses.
    public var isKnown: Bool
    /// Of an approval: the digest of what it is for, and the phone that wants to be bound.
    var approves: [UInt8]?
    var device: DeviceID?

    public init(
        subject: Subject, username: String? = nil, request: String? = nil, number: String? = nil, ip: String? = nil,
        userAgent: String? = nil,
        service: String? = nil, action: String? = nil, details: [Context.Detail] = [], expiresIn: Int? = nil,
        factors: [Factor]? = nil,
        minAssurance: Assurance? = nil, language: String? = nil, isKnown: Bool = false
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
        self.language = language
        self.isKnown = isKnown
    }
}

public struct OpenedChallenge: Sendable, Equatable {
    public let challenge: ChallengeID
    /// The user has a bound phone.
    public let verified: Bool
    /// Nil where none is asked for, and where the user is not asked at all.
    public let number: String?
    /// Nil where nothing is under way: a recovery code may be taken all the same.
    public let factor: Factor?
    public let expiresAt: Timestamp
    /// No code of the user is taken: only a phone can answer.
    public let areCodesLocked: Bool
}

extension Relay {
    public func login(
        _ request: LoginRequest, by website: Website, as operation: Operation
    ) async throws(Refusal) -> OpenedChallenge {
        let now = time.now()
        let limits = limits(website.policy, isKnown: request.isKnown, at: now)
        let subject = try await withStore("login") { () async throws(StoreFailure) in
            try await store.subject(request.subject, of: website.id, within: limits)
        }
        guard let subject else { throw .notFound }
        // By bytes, as the store compares: Swift takes different spellings of a character for the same.
        if let name = request.username, !name.utf8.elementsEqual(subject.username.utf8) {
            throw .invalid([FieldFault("username", .mismatch, "is not the name of the user that token names")])
        }
        let plan = try plan(request, about: subject, by: website, at: now, as: operation)
        // A flood costs reading alone. What may have been stored before has its room, and is looked for in any case.
        if let blocker = subject.limitedBy, !operation.mayHaveRun { throw limited(by: blocker, subject, website) }
        let outcome = try await withStore("login") { () async throws(StoreFailure) in
            try await store.ask(plan.challenge, within: limits, as: operation)
        }
        switch outcome {
        case .gone: throw .notFound
        case .limited(let blocker): throw limited(by: blocker, subject, website)
        case .stored(let stored): return await asked(stored, by: plan, about: subject, website)
        }
    }

    func limits(_ policy: Policy, isKnown: Bool, at now: Timestamp) -> AskLimits {
        AskLimits(
            since: now - Policy.limitWindow, logins: policy.loginLimit, pushes: policy.pushLimit, isKnown: isKnown)
    }

    /// What follows from a challenge that is in the store.
    private func asked(
        _ stored: StoredChallenge, by plan: Plan, about subject: AskSubject, _ website: Website
    ) async -> OpenedChallenge {
        let challenge = plan.challenge
        var factor = stored.factor
        // What has to be sent begins in a change of its own, which a repetition finds done.
        if plan.beginsWithMessage, factor == nil, !stored.life.state.isEnd {
            factor = await advance(challenge.id, because: .asked)
        }
        let isRefused = stored.life.reason == .locked || stored.life.reason == .frozen
        log.info(
            "challenge.asked",
            [
                .website: website.name, .user: subject.user.text, .challenge: challenge.id.text,
                .factor: factor?.rawValue ?? "none", .reason: stored.life.reason?.rawValue,
            ])
        for superseded in stored.superseded { heldRequests.fire(.challenge(superseded)) }
        if stored.life.state.isEnd { scheduleWebhooks() } else { heldRequests.fire(.user(subject.user)) }
        // A challenge that an earlier run of this operation stored ends when that run said, not now and a lifetime: its
        // pushes are in the outbox, or were sent long ago.
        if stored.life.expiresAt == challenge.life.expiresAt {
            count(stored, beganWith: factor, wasToPush: !plan.deliveries.isEmpty)
            for superseded in stored.superseded { ended(superseded, .superseded) }
            for delivery in plan.deliveries where stored.pushes.contains(delivery.push.id) { send(delivery) }
        }
        return OpenedChallenge(
            challenge: challenge.id, verified: !subject.phones.isEmpty, number: isRefused ? nil : stored.number,
            factor: factor, expiresAt: stored.life.expiresAt, areCodesLocked: subject.areCodesLocked)
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

    private struct Plan {
        let challenge: NewChallenge
        let deliveries: [PushDelivery]
        let beginsWithMessage: Bool
    }

    /// Everything about the new challenge. Its ids follow from the operation; nonce and number are drawn, and of a
    /// challenge that an earlier run stored, the stored ones count.
    private func plan(
        _ request: LoginRequest, about subject: AskSubject, by website: Website, at now: Timestamp,
        as operation: Operation
    ) throws(Refusal) -> Plan {
        let policy = website.policy
        let digits = policy.numberDigits(for: request.details)
        if let number = request.number, number.utf8.count != digits {
            let message = digits == 0 ? "is not asked for by this website's policy" : "must have \(digits) digits"
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
        // A website that answers for its users needs no factor of this relay's.
        if !cascade.canAnswer(means), policy.answers != .website,
            let over = try? life.after(
                .giveUp(subject.areCodesLocked && !subject.codes.isEmpty ? .locked : .undeliverable), at: now)
        {
            life = over
        }
        let deliveries = deliveries(
            to: first == .push ? pushable(subject.phones) : [], of: id, by: website.displayName, narrowed,
            showing: (request.service, request.ip, place), until: expiresAt, at: now, as: operation)
        let isSent = first?.isSent == true
        let challenge = NewChallenge(
            id: id, website: website.id, user: subject.user, life: life, policy: narrowed.json,
            context: context.bytes, nonce: randomness.bytes(16), number: number,
            approves: request.approves, language: request.language,
            otherwise: isSent ? nil : first == .push ? .pull : first,
            pushes: deliveries.map { entry(for: $0, at: now) }, expiry: operation.identifier("expiry"),
            next: first.flatMap { next(after: $0, cascade, means, narrowed, at: now, operation) }, askedAt: now)
        return Plan(challenge: challenge, deliveries: deliveries, beginsWithMessage: isSent)
    }

    /// The policy for this challenge: what the website wants of it now, and of an approval the strongest alone.
    private func narrowed(
        _ policy: Policy, by request: LoginRequest, asksNumber: Bool, _ means: Cascade.AvailableFactors
    ) throws(Refusal) -> Policy {
        let wanted = policy.narrowed(to: request.factors, atLeast: nil, asksNumber: asksNumber)
        guard !wanted.factors.isEmpty else {
            let allowed = policy.factors.map(\.rawValue).joined(separator: ", ")
            throw .invalid([
                FieldFault(
                    "factors", .mismatch,
                    "names none that this website's policy allows with assurance \(wanted.minAssurance.rawValue): "
                        + "factors is \(allowed)")
            ])
        }
        let narrowed = policy.narrowed(to: request.factors, atLeast: request.minAssurance, asksNumber: asksNumber)
        guard !narrowed.factors.isEmpty else {
            let left = wanted.factors.map(\.rawValue).joined(separator: ", ")
            throw .invalid([
                FieldFault("min_assurance", .mismatch, "is more than any of \(left) is worth for this login")
            ])
        }
        return request.approves == nil ? narrowed : narrowed.strongest(of: means)
    }

    /// What sees to it that something follows. A message that is first to be sent follows on the challenge itself: this
    /// relay begins it at once, and another one does if this one dies before.
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

    /// Phones that a push service would take a push for. The others can still ask for what waits for them.
    func pushable(_ phones: [AskSubject.Phone]) -> [AskSubject.Phone] {
        let canAsk = phones.contains { $0.hasKey }
        return phones.filter { push?.reaches($0.platform, pushToken: $0.pushToken, canAsk: canAsk) == true }
    }

    /// Pushes that begin now.
    func deliveries(
        to phones: [AskSubject.Phone], of challenge: ChallengeID, by website: String, _ policy: Policy,
        showing shown: (service: String?, ip: String?, place: String?), until expiresAt: Timestamp, at now: Timestamp,
        as operation: Operation
    ) -> [PushDelivery] {
        phones.map { phone in
            let push = Push(
                id: operation.identifier("push \(phone.id.text)"), challenge: challenge, deviceToken: phone.pushToken,
                environment: phone.environment, detail: policy.pushDetail, website: website, service: shown.service,
                ip: shown.ip, place: shown.place, expiresAt: expiresAt,
                deliverBy: PushDelivery.deliverBy(now, expiresAt, at: now))
            return PushDelivery(push: push, device: phone.id, askedAt: now)
        }
    }

    /// How the outbox has it until it is settled.
    func entry(for delivery: PushDelivery, at now: Timestamp) -> NewChallenge.PushEntry {
        NewChallenge.PushEntry(id: delivery.push.id, device: delivery.device, leasedUntil: now + Self.lease, holder: id)
    }
}
