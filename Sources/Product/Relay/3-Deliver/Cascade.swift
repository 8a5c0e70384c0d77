import Domain
import Log
import World

/// The cascade: the relay tries the factors of a challenge one after another until the challenge
/// ends. An answer by an earlier factor still counts while a later one is tried.
///
/// `Domain.Cascade` holds the rules for the order. This file reads the challenge, asks the rules
/// for the next factor, and writes the new step with everything that it sends. The script marks the
/// old step as expired and stores the push or code as an outbox entry. It also stores a `next`
/// entry, which is due at the deadline of the new factor.
///
/// Invariants: at most one step is under way, and beside it at most a push whose service is down
/// (`ChallengeRow.Step.isAside`), or that was sent late. A step begins only if everything that was read still
/// holds when it is written: the number of steps, the factor's counter, and the state of the
/// challenge and user. Therefore, if two relays advance the same challenge, only one of them begins
/// a step. At most one `next` entry exists for each challenge.
///
/// Failures: the relay dies between two steps. The `next` entry is in the outbox, so another relay
/// continues the cascade when that entry is due. If a factor is refused or undeliverable, the same
/// script that records this makes the `next` entry due at once.
///
/// Tests: `RelayTests/CascadeTests.swift` and, for the order, `DomainTests/CascadeTests.swift`.
extension Relay {
    /// The reason why the cascade of a challenge advances.
    enum Cause: String {
        /// The challenge was opened.
        case asked
        /// The current step reached its deadline.
        case due
        /// The current step was refused or could not be delivered.
        case undeliverable = "came_to_nothing"
        /// The service of the current step's push is down.
        case pushDown = "push_down"
        /// The website requested a factor.
        case hand
        /// The user typed a wrong code, and the policy sends another one.
        case wrongCode = "wrong_code"

        /// Whether a step begins even while a phone shows the challenge: the user is at the website
        /// and not at the phone.
        var interruptsPhone: Bool { self == .hand || self == .wrongCode }
    }

    /// The factors that the user has and that this relay can use now.
    func means(phones: [AskSubject.Phone], codes: some Sequence<Factor>) -> Cascade.AvailableFactors {
        let best: Cascade.AvailableFactors.Phone? =
            phones.isEmpty ? nil : pushable(phones).isEmpty ? .asking : .pushable
        return Cascade.AvailableFactors(phone: best, codes: Set(codes.filter { !$0.isSent || courier(of: $0) != nil }))
    }

    func means(of row: CascadeRow) -> Cascade.AvailableFactors {
        means(phones: row.phones, codes: row.areCodesLocked ? [] : row.codes.map(\.kind))
    }

    func courier(of factor: Factor) -> (any MessageCourier)? {
        switch factor {
        case .mail: mail
        case .sms: texts
        default: nil
        }
    }

    /// Begins the next factor of the challenge, if there is one. Failures are ignored here: the
    /// store and the log have the result.
    ///
    /// - Returns: the factor that is under way afterwards; nil if no factor was begun.
    @discardableResult
    func advance(_ challenge: ChallengeID, because cause: Cause) async -> Factor? {
        (try? await advanced(challenge, because: cause)) ?? nil
    }

    /// The same as `advance(_:because:)`, but throws the reason of a failure.
    func advanced(_ challenge: ChallengeID, because cause: Cause) async throws(Refusal) -> Factor? {
        var cause = cause
        // If a step is refused at once, the next one follows at once. Each round uses up one
        // factor.
        for _ in Factor.choices {
            guard let step = try await continueCascade(challenge, because: cause) else { return nil }
            guard step.state == .refused else { return step.factor }
            cause = .undeliverable
        }
        return nil
    }

    private func continueCascade(_ challenge: ChallengeID, because cause: Cause) async throws(Refusal) -> BegunStep? {
        // The store begins nothing that would interrupt a phone.
        if !cause.interruptsPhone { try await recordSeen(challenge) }
        guard let row = try await cascade(challenge), row.hasNext else { return nil }
        switch cause {
        case .undeliverable where row.steps.contains { $0.state.isUnderWay && !$0.isAside }: return nil
        case .asked:
            if let last = row.steps.last {
                return BegunStep(factor: last.factor, state: last.state, reason: last.reason, pushes: [])
            }
        case .pushDown:
            // A phone shows the challenge already, or the next factor has begun.
            if let last = row.steps.last, last.factor != .push || last.state != .queued {
                return BegunStep(factor: last.factor, state: last.state, reason: last.reason, pushes: [])
            }
        default: break
        }
        let policy = try policy(row.policy, of: row.challenge)
        let means = means(of: row)
        // If the user has expired, the website can still begin a factor after a new expiry.
        guard !row.hasUserExpired, let factor = Cascade(factors: policy.factors).next(after: row.tried, means) else {
            try await withStore("cascade") { () async throws(StoreFailure) in
                try await store.dropNext(challenge, after: row.steps.count)
            }
            return nil
        }
        return try await begin(factor, row, policy, means, because: cause, as: operations.new())
    }

    func cascade(_ challenge: ChallengeID) async throws(Refusal) -> CascadeRow? {
        try await withStore("cascade") { () async throws(StoreFailure) in
            try await store.cascade(challenge, at: time.now())
        }
    }

    func begin(
        _ factor: Factor, _ row: CascadeRow, _ policy: Policy, _ means: Cascade.AvailableFactors, because cause: Cause,
        as operation: Operation
    ) async throws(Refusal) -> BegunStep? {
        let now = time.now()
        var step = NewStep(
            challenge: row.challenge, user: row.user, factor: factor, after: row.steps.count,
            interruptsPhone: cause.interruptsPhone,
            at: now, limits: limits(policy, row.origin, at: now))
        step.setsPushAside = cause == .pushDown
        let website = limited(row.account.id, row.account.name, policy: row.account.policy)
        var pushes: [Push] = []
        if factor == .push {
            pushes = self.pushes(
                to: affordable(pushable(row.phones), by: website), of: row.challenge, user: row.user, by: row.website,
                policy,
                showing: Context.shownInPush(row.context), until: row.expiresAt, at: now, as: operation)
            step.pushes = pushes.map { entry(for: $0, at: now) }
        }
        if factor.isSent, let own = row.codes.first(where: { $0.kind == factor }) {
            step.code = nextCode(
                of: own, for: row.challenge, language: row.language, until: row.expiresAt, at: now, as: operation)
            if factor == .sms {
                step.charge = smsLimits.charge(user: row.user, to: own.address ?? "", at: now)?
                    .also(counting: website.id, within: website.limits, at: now)
                if step.charge == nil { step.refusal = NewStep.notAllowed }
            } else if !mayUse(WebsiteLimit.mails, by: website) {
                step.refusal = NewStep.websiteLimited
            }
            let isForOutage = cause == .pushDown || !cause.interruptsPhone && row.isPushAside
            if isForOutage, step.refusal == nil, !takeOutageMessage(by: website) {
                step.refusal = NewStep.outageLimited
            }
        }
        let tried = row.tried + [Cascade.CascadeStep(factor: factor, state: .queued, at: now)]
        if Cascade(factors: policy.factors).next(after: tried, means) != nil {
            step.next = NewChallenge.NextFactor(
                id: operation.identifier("next"), due: policy.deadline(of: factor, from: now), holder: nil)
        }
        let begun = try await withStore("cascade") { [step] () async throws(StoreFailure) in
            try await store.begin(step, as: operation)
        }
        guard let begun else { return nil }
        log.info(
            "factor.begun",
            [
                .challenge: row.challenge.text, .user: row.user.text, .factor: begun.factor.rawValue,
                .outcome: begun.state.rawValue, .reason: begun.reason ?? cause.rawValue,
            ])
        metrics.began(begun.factor)
        if factor == .sms, begun.state == .refused {
            metrics.reached(.sms)
            if begun.reason == NewStep.websiteLimited { reached(textLimit(of: website), by: website) }
            log.notice("sms.limited", [.challenge: row.challenge.text, .user: row.user.text, .reason: begun.reason])
        }
        if factor == .push, begun.factor == .pull { metrics.reached(.push) }
        usage.count(\.pushes, begun.pushes.count, of: website.id, website.name, at: now)
        for push in pushes where begun.pushes.contains(push.id) { send(push) }
        if begun.factor == .push, isPushDown(pushes, of: row.user, policy) {
            spawn { [pushes] in _ = await self.begin(beside: pushes, of: row.challenge) }
        }
        if let code = step.code, begun.state != .refused {
            if factor == .mail { startMail(code.id, of: website) } else { startDelivery(code.id) }
        }
        return begun
    }
}

extension Relay {
    /// Begins a factor at the website's request, or sends its code again.
    public func begin(
        _ factor: Factor, of challenge: ChallengeID, by website: Website, as operation: Operation
    ) async throws(Refusal) -> BegunStep {
        let found = try await withStore("factor") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        guard let found else { throw .notFound }
        if operation.mayHaveRun {
            let begun = try await withStore("factor") { () async throws(StoreFailure) in
                try await store.begun(by: operation.id)
            }
            if let begun { return begun }
        }
        // A factor that is under way is answered with its present state.
        try? await recordSeen(challenge)
        // The data may change between the read and the write. After three changes the request
        // fails.
        for _ in 0..<3 {
            let settled = try await settled(found)
            guard !settled.life.state.isEnd, let row = try await cascade(challenge) else {
                throw .alreadyDecided(result: try await result(challenge, to: website).result.rawValue)
            }
            guard !row.hasUserExpired else { throw .userExpired }
            if let begun = try await beginByHand(factor, row, as: operation) { return begun }
        }
        throw .unavailable
    }

    /// Begins a factor at the website's request; returns nil if the data has changed since the row
    /// was read.
    private func beginByHand(
        _ factor: Factor, _ row: CascadeRow, as operation: Operation
    ) async throws(Refusal) -> BegunStep? {
        let policy = try policy(row.policy, of: row.challenge)
        let means = means(of: row)
        let now = time.now()
        if factor.isCode, row.areCodesLocked, policy.factors.contains(factor) { throw .codesLocked }
        switch Cascade(factors: policy.factors).start(factor, after: row.tried, means, at: now) {
        case .begin(let factor):
            let begun = try await begin(factor, row, policy, means, because: .hand, as: operation)
            if begun?.state == .refused { spawn { await self.advance(row.challenge, because: .undeliverable) } }
            return begun
        case .underWay:
            return row.steps.last.map {
                BegunStep(factor: $0.factor, state: $0.state, reason: $0.reason, pushes: [])
            }
        case .forbidden:
            let allowed = policy.factors.map(\.rawValue).joined(separator: ", ")
            throw .forbidden(
                LocalizedText(
                    "\(factor.rawValue) is not allowed for this challenge: it accepts \(allowed)",
                    de: "\(factor.rawValue) ist bei dieser Challenge nicht erlaubt. Erlaubt sind: \(allowed)"))
        case .unavailable:
            throw .conflict([
                FieldFault(
                    "factor", .state,
                    LocalizedText(
                        "must be another one: the user has no \(factor.rawValue) that works now",
                        de: "muss ein anderer sein: Der Faktor \(factor.rawValue) des Benutzers ist jetzt unbrauchbar"))
            ])
        case .limited(let moment):
            metrics.reached(.sending)
            throw .limited(retryAfter: (moment ?? row.expiresAt) - now)
        }
    }
}
