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
    /// Of an approval: the digest of what it is for, and the phone that wants to be bound.
    var approves: [UInt8]?
    var device: DeviceID?

    public init(
        subject: Subject, username: String? = nil, request: String? = nil, number: String? = nil, ip: String? = nil,
        userAgent: String? = nil,
        service: String? = nil, action: String? = nil, details: [Context.Detail] = [], expiresIn: Int? = nil
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
    }
}

public struct Asked: Sendable, Equatable {
    public let challenge: ChallengeID
    /// The user has a bound phone.
    public let verified: Bool
    /// Nil where none is asked for, and where the user is not asked at all.
    public let number: String?
    public let factor: Factor?
    public let expiresAt: Timestamp
}

extension Relay {
    public func login(
        _ request: LoginRequest, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Asked {
        let now = time.now()
        let limits = AskLimits(
            since: now - Policy.limitWindow, logins: website.policy.loginLimit, pushes: website.policy.pushLimit)
        let subject = try await ask("login") { () async throws(StoreFailure) in
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
        let outcome = try await ask("login") { () async throws(StoreFailure) in
            try await store.ask(plan.challenge, within: limits, as: operation)
        }
        switch outcome {
        case .gone: throw .notFound
        case .limited(let blocker): throw limited(by: blocker, subject, website)
        case .stored(let stored): return asked(stored, by: plan, about: subject, website)
        }
    }

    /// What follows from a challenge that is in the store.
    private func asked(
        _ stored: StoredChallenge, by plan: Plan, about subject: Askable, _ website: Website
    ) -> Asked {
        let challenge = plan.challenge
        let isRefused = stored.life.reason == .locked || stored.life.reason == .frozen
        log.info(
            "challenge.asked",
            [
                .website: website.name, .user: subject.user.text, .challenge: challenge.id.text,
                .factor: stored.factor?.rawValue ?? "none", .reason: stored.life.reason?.rawValue,
            ])
        for superseded in stored.superseded { waits.fire(.challenge(superseded)) }
        if !stored.life.state.isEnd { waits.fire(.user(subject.user)) }
        // A challenge that an earlier run of this operation stored ends when that run said, not now and a lifetime: its
        // pushes are in the outbox, or were sent long ago.
        if stored.life.expiresAt == challenge.life.expiresAt {
            count(stored, wasToPush: !plan.deliveries.isEmpty)
            for superseded in stored.superseded { ended(superseded, .superseded) }
            for delivery in plan.deliveries where stored.pushes.contains(delivery.push.id) {
                log.info(
                    "push.queued",
                    [
                        .challenge: challenge.id.text, .device: delivery.device.text, .push: delivery.push.id.text,
                    ])
                spawn { await self.deliver(delivery) }
            }
        }
        return Asked(
            challenge: challenge.id, verified: !subject.phones.isEmpty, number: isRefused ? nil : stored.number,
            factor: stored.factor, expiresAt: stored.life.expiresAt)
    }

    private func limited(by blocker: Timestamp, _ subject: Askable, _ website: Website) -> Refusal {
        metrics.reached(.login)
        log.notice("login.limited", [.website: website.name, .user: subject.user.text])
        return .limited(retryAfter: blocker + Policy.limitWindow - time.now())
    }

    private func count(_ stored: StoredChallenge, wasToPush: Bool) {
        metrics.asked(stored.factor)
        if stored.life.state.isEnd {
            metrics.ended(stored.life.reason, nil)
        } else if wasToPush, stored.pushes.isEmpty {
            metrics.reached(.push)
        }
    }

    private struct Plan {
        let challenge: NewChallenge
        let deliveries: [Delivery]
    }

    /// Everything about the new challenge that follows from the request, the policy and the operation.
    private func plan(
        _ request: LoginRequest, about subject: Askable, by website: Website, at now: Timestamp,
        as operation: Operation
    ) throws(Refusal) -> Plan {
        let policy = website.policy
        let digits = policy.numberDigits(for: request.details)
        if let number = request.number, number.utf8.count != digits {
            let message = digits == 0 ? "is not asked for by this website's policy" : "must have \(digits) digits"
            throw .invalid([FieldFault("number", .length, message)])
        }
        let expiresAt = now + .seconds(request.expiresIn ?? policy.lifetime)
        let number = digits == 0 ? nil : request.number ?? operation.digits("number", count: digits)
        let place = request.ip.flatMap { placeOf($0) }
        let context = Context(
            website: website.name, displayName: website.displayName, username: subject.username,
            service: request.service, action: request.action, details: request.details, ip: request.ip,
            place: place, userAgent: request.userAgent, request: request.request, numberDigits: digits,
            device: request.device?.text, createdAt: now, expiresAt: expiresAt)
        let id: ChallengeID = operation.identifier("challenge")
        // The others can still ask for what waits for them.
        let canAsk = subject.phones.contains { $0.hasKey }
        let pushable = subject.phones.filter {
            push?.reaches($0.platform, pushToken: $0.pushToken, canAsk: canAsk) == true
        }
        let reachable = !subject.phones.isEmpty || policy.answers == .website
        var life = ChallengeLife(expiresAt: expiresAt)
        if !reachable, let over = try? life.after(.giveUp(.undeliverable), at: now) { life = over }
        let errands = reachable ? pushable.map { errand(to: $0.id, now, operation) } : []
        let challenge = NewChallenge(
            id: id, website: website.id, user: subject.user, life: life, policy: policy.json,
            context: context.bytes, nonce: operation.secret("nonce", count: 16), number: number,
            approves: request.approves, otherwise: subject.phones.isEmpty ? nil : .pull, pushes: errands,
            expiry: operation.identifier("expiry"), askedAt: now)
        let deliveries = zip(errands, pushable).map { errand, phone in
            let push = Push(
                id: errand.id, challenge: id, deviceToken: phone.pushToken, environment: phone.environment,
                detail: policy.pushDetail, website: website.displayName, service: request.service, ip: request.ip,
                place: place, expiresAt: expiresAt, deliverBy: Delivery.deliverBy(now, expiresAt, at: now))
            return Delivery(push: push, device: phone.id, askedAt: now)
        }
        return Plan(challenge: challenge, deliveries: deliveries)
    }

    private func errand(to device: DeviceID, _ now: Timestamp, _ operation: Operation) -> NewChallenge.Errand {
        NewChallenge.Errand(
            id: operation.identifier("push \(device.text)"), device: device, leasedUntil: now + Self.lease,
            holder: id)
    }
}
