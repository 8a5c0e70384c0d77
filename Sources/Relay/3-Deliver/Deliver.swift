import Domain
import Log
import Pushing
import World

/// Deliver: what the outbox holds is done, and what came of it is written down.
public protocol DeliverStore: Sendable {
    /// Leases rows that are due: nobody's, this relay's own whose lease is over, never another living relay's.
    func claim(_ claim: Claim) async throws(StoreFailure) -> [ClaimedErrand]
    /// Nil once its challenge has ended.
    func push(_ errand: ErrandID) async throws(StoreFailure) -> PushRow?
    func settle(_ settlement: Settlement, as operation: Operation) async throws(StoreFailure)
    func postpone(_ errand: ErrandID, until: Timestamp) async throws(StoreFailure)
}

public struct Claim: Sendable {
    public let id: OperationID
    public let relay: RelayID
    public let now: Timestamp
    public let leasedUntil: Timestamp
    public let limit: Int
}

public struct ClaimedErrand: Sendable, Equatable {
    public enum Kind: String, Sendable {
        case push, expiry
    }

    public let id: ErrandID
    public let kind: Kind
    public let challenge: ChallengeID

    public init(id: ErrandID, kind: Kind, challenge: ChallengeID) {
        self.id = id
        self.kind = kind
        self.challenge = challenge
    }
}

/// A push as it can be made again from the store.
public struct PushRow: Sendable, Equatable {
    public let challenge: ChallengeID
    public let deviceToken: String
    public let environment: PushEnvironment
    public let policy: String
    public let website: String
    public let context: [UInt8]
    public let expiresAt: Timestamp
    /// How often it has been tried.
    public let attempts: Int

    public init(
        challenge: ChallengeID, deviceToken: String, environment: PushEnvironment, policy: String, website: String,
        context: [UInt8], expiresAt: Timestamp, attempts: Int
    ) {
        self.challenge = challenge
        self.deviceToken = deviceToken
        self.environment = environment
        self.policy = policy
        self.website = website
        self.context = context
        self.expiresAt = expiresAt
        self.attempts = attempts
    }
}

/// The end of one push.
public struct Settlement: Sendable {
    public let errand: ErrandID
    public let challenge: ChallengeID
    public let step: StepState
    public let outcome: String
    public let deviceToken: String
    /// Set when the token is dead: it is dropped if it is the phone's still and was registered before this moment.
    public let tokenDeadSince: Timestamp?
    public let at: Timestamp
}

extension Relay {
    /// How long a relay may act on a row before it counts as left behind. Longer than any push may take.
    static let lease = Duration.seconds(15)
    static let claimSize = 100

    func deliver(_ message: Push, attempts: Int = 0) async {
        guard let push else { return }
        var outcome = PushOutcome.badRequest("expired unsent")
        if time.now() < message.expiresAt {
            outcome = await push.send(message)
            metrics.pushed(outcome)
        }
        let now = time.now()
        switch outcome {
        case .accepted:
            await settle(message, .sent, "accepted")
        case .tokenDead(let since, let reason):
            await settle(message, .refused, reason, tokenDeadSince: since ?? now)
        case .credentialFault(let reason), .badRequest(let reason):
            log.error("push.refused", [.challenge: message.challenge.text, .reason: reason])
            await settle(message, .undeliverable, reason)
        case .ambiguous(let reason) where attempts > 0:
            await settle(message, .undeliverable, reason)
        case .ambiguous(let reason):
            // Once more under the same id: the phone shows one message however often it comes.
            await postpone(message, by: .seconds(1), reason)
        case .retryAfter(let pause, let reason):
            await postpone(message, by: pause, reason)
        }
    }

    private func settle(
        _ message: Push, _ step: StepState, _ outcome: String, tokenDeadSince: Timestamp? = nil
    ) async {
        let settlement = Settlement(
            errand: message.id, challenge: message.challenge, step: step, outcome: outcome,
            deviceToken: message.deviceToken, tokenDeadSince: tokenDeadSince, at: time.now())
        let operation = operations.new()
        // A failure leaves the row leased to us; it is due again when the lease is over.
        let written: Void? = try? await ask("deliver") { () async throws(StoreFailure) in
            try await store.settle(settlement, as: operation)
        }
        guard written != nil else { return }
        log.info("push.settled", [.challenge: message.challenge.text, .outcome: outcome])
    }

    private func postpone(_ message: Push, by pause: Duration, _ reason: String) async {
        let due = time.now() + pause
        guard due < message.expiresAt else { return await settle(message, .undeliverable, reason) }
        log.warning("push.postponed", [.challenge: message.challenge.text, .reason: reason])
        _ = try? await ask("deliver") { () async throws(StoreFailure) in
            try await store.postpone(message.id, until: due)
        }
    }

    /// Does what is due in the outbox. Called by the daemon's timer, and again at once while there is more.
    public func attend() async {
        let now = time.now()
        let claim = Claim(
            id: operations.draw(), relay: id, now: now, leasedUntil: now + Self.lease, limit: Self.claimSize)
        let errands = try? await ask("outbox") { () async throws(StoreFailure) in try await store.claim(claim) }
        for errand in errands ?? [] {
            switch errand.kind {
            case .push: spawn { await self.redeliver(errand) }
            case .expiry: spawn { await self.expire(errand) }
            }
        }
        if errands?.count == Self.claimSize { spawn { await self.attend() } }
    }

    private func redeliver(_ errand: ClaimedErrand) async {
        let row = try? await ask("outbox") { () async throws(StoreFailure) in try await store.push(errand.id) }
        guard let row else { return }
        guard let policy = try? settings.policy.changed(by: row.policy) else { return }
        let shown = Context.shownInPush(row.context)
        await deliver(
            Push(
                id: errand.id, challenge: row.challenge, deviceToken: row.deviceToken, environment: row.environment,
                detail: policy.pushDetail, website: row.website, service: shown.service, ip: shown.ip,
                place: shown.place, expiresAt: row.expiresAt), attempts: row.attempts)
    }

    private func expire(_ errand: ClaimedErrand) async {
        let now = time.now()
        let life = ChallengeLife(state: .expired, decision: nil, reason: .expired, expiresAt: now)
        let closing = Closing(challenge: errand.challenge, life: life, event: "challenge.expired", at: now)
        _ = try? await end(closing, as: operations.new())
    }
}
