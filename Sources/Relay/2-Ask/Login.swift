import Bytes
import Crypto
import Domain
import Log
import World

/// Ask: the website asks about a user; a challenge is stored and its delivery begins.
public protocol AskStore: Sendable {
    func subject(_ subject: Subject, of website: WebsiteID) async throws(StoreFailure) -> Askable?
    /// When the challenge ends (as it was stored the first time); nil when the user or the website went away in between.
    func ask(_ challenge: NewChallenge, as operation: Operation) async throws(StoreFailure) -> Timestamp?
}

/// Whom a request is about.
public enum Subject: Sendable, Equatable {
    case token(UserToken)
    case username(String)
}

/// A user as Ask needs it: its active phones, and the challenges that a new one supersedes.
public struct Askable: Sendable, Equatable {
    public struct Phone: Sendable, Equatable {
        public let id: DeviceID
        public let pushToken: String
        public let environment: PushEnvironment

        public init(id: DeviceID, pushToken: String, environment: PushEnvironment) {
            self.id = id
            self.pushToken = pushToken
            self.environment = environment
        }
    }

    public let user: UserID
    public let username: String
    public let phones: [Phone]
    public let open: [ChallengeID]

    public init(user: UserID, username: String, phones: [Phone], open: [ChallengeID]) {
        self.user = user
        self.username = username
        self.phones = phones
        self.open = open
    }
}

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

public struct NewChallenge: Sendable {
    public let id: ChallengeID
    public let website: WebsiteID
    public let user: UserID
    public let life: ChallengeLife
    public let policy: String
    public let context: [UInt8]
    public let nonce: [UInt8]
    public let number: String?
    /// Of an approval: the digest of what it is for.
    public let approves: [UInt8]?
    public let factor: Factor?
    public let step: StepState?
    public let pushes: [Errand]
    public let expiry: ErrandID
    public let askedAt: Timestamp

    /// A push that is written down before it is sent.
    public struct Errand: Sendable {
        public let id: ErrandID
        public let device: DeviceID
        public let leasedUntil: Timestamp
        public let holder: RelayID
    }
}

public struct Asked: Sendable, Equatable {
    public let challenge: ChallengeID
    /// The user has a bound phone.
    public let verified: Bool
    public let number: String?
    public let factor: Factor?
    public let expiresAt: Timestamp
}

extension Relay {
    public func login(
        _ request: LoginRequest, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Asked {
        let subject = try await ask("login") { () async throws(StoreFailure) in
            try await store.subject(request.subject, of: website.id)
        }
        guard let subject else { throw .notFound }
        // By bytes, as the store compares: Swift takes different spellings of a character for the same.
        if let name = request.username, !name.utf8.elementsEqual(subject.username.utf8) {
            throw .invalid([FieldFault("username", .mismatch, "is not the name of the user that token names")])
        }
        let plan = try plan(request, about: subject, by: website, as: operation)
        let expiresAt = try await ask("login") { () async throws(StoreFailure) in
            try await store.ask(plan.challenge, as: operation)
        }
        guard let expiresAt else { throw .notFound }
        log.info(
            "challenge.asked",
            [
                .website: website.name, .user: subject.user.text, .challenge: plan.challenge.id.text,
                .factor: plan.challenge.factor?.rawValue ?? "none",
            ])
        for superseded in subject.open where superseded != plan.challenge.id { waits.fire(.challenge(superseded)) }
        // A challenge that an earlier run of this operation stored ends when that run said, not now and a lifetime: its
        // pushes are in the outbox, or were sent long ago.
        let isStoredNow = expiresAt == plan.challenge.life.expiresAt
        for push in isStoredNow ? plan.pushes : [] { spawn { await self.deliver(push) } }
        return Asked(
            challenge: plan.challenge.id, verified: !subject.phones.isEmpty, number: plan.challenge.number,
            factor: plan.challenge.factor, expiresAt: expiresAt)
    }

    private struct Plan {
        let challenge: NewChallenge
        let pushes: [Push]
    }

    /// Everything about the new challenge that follows from the request, the policy and the operation.
    private func plan(
        _ request: LoginRequest, about subject: Askable, by website: Website, as operation: Operation
    ) throws(Refusal) -> Plan {
        let now = time.now()
        let policy = website.policy
        // Where the website itself answers there is no phone to type a number into.
        let digits = policy.answers == .website ? 0 : policy.number
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
        // A phone whose push token died can still ask for what waits for it.
        let pushable = push == nil ? [] : subject.phones.filter { !$0.pushToken.isEmpty }
        let reachable = !subject.phones.isEmpty || policy.answers == .website
        var life = ChallengeLife(expiresAt: expiresAt)
        if !reachable, let over = try? life.after(.giveUp(.undeliverable), at: now) { life = over }
        let errands = reachable ? pushable.map { errand(to: $0.id, now, operation) } : []
        let challenge = NewChallenge(
            id: id, website: website.id, user: subject.user, life: life, policy: policy.json,
            context: context.bytes, nonce: operation.secret("nonce", count: 16), number: number,
            approves: request.approves,
            factor: subject.phones.isEmpty ? nil : pushable.isEmpty ? .pull : .push,
            step: subject.phones.isEmpty ? nil : .queued, pushes: errands, expiry: operation.identifier("expiry"),
            askedAt: now)
        let pushes = zip(errands, pushable).map { errand, phone in
            Push(
                id: errand.id, challenge: id, deviceToken: phone.pushToken, environment: phone.environment,
                detail: policy.pushDetail, website: website.displayName, service: request.service, ip: request.ip,
                place: place, expiresAt: expiresAt)
        }
        return Plan(challenge: challenge, pushes: pushes)
    }

    private func errand(to device: DeviceID, _ now: Timestamp, _ operation: Operation) -> NewChallenge.Errand {
        NewChallenge.Errand(
            id: operation.identifier("push \(device.text)"), device: device, leasedUntil: now + Self.lease,
            holder: id)
    }
}
