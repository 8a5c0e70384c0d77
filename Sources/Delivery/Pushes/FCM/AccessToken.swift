import EventLoop
import Log
import Synchronization
import World

/// The access token that all loops of the process share.
///
/// Invariant: at most one request for a token is under way. A pool that has no token is recorded in
/// `waiting`, and is told after each attempt and when the next one may begin. So its pushes wait in
/// its queue, where their deadlines apply.
///
/// A token is renewed in the background before its end. If that fails, pushes go on with the old
/// one. If the service withdraws a token early (401), the pushes that met this wait for another one.
///
/// Failures: the service refuses the account, so the pools open their circuit breaker, whose probe
/// makes the next request. Or the service is not reached: then it is asked again after growing pauses.
final class AccessToken: PushAuthorization {
    /// The time before the end of a token at which it is renewed, and at which it is no longer used.
    private static let renewal = Duration.seconds(300)
    private static let margin = Duration.seconds(30)

    private struct Token {
        let value: String
        let at: Instant
        let life: Duration

        func isUsable(at now: Instant) -> Bool { now - at < life - min(margin, life / 10) }
        func mustBeRenewed(at now: Instant) -> Bool { now - at >= life - min(renewal, life / 4) }
    }

    private struct State {
        var token: Token?
        var isAsking = false
        var failure: AuthorizationFailure?
        var backoff = Backoff()
        /// The time before which no request is sent, after one that failed.
        var pausedUntil: Instant?
        var waiting: [LoopBound<PushPool>] = []

        func usable(at now: Instant) -> Token? { token.flatMap { $0.isUsable(at: now) ? $0 : nil } }
    }

    private let request: AccessTokenRequest
    private let time: any TimeSource
    private let randomness: any Randomness
    private let log: Log
    private let state = Mutex(State())

    init(_ request: AccessTokenRequest, time: any TimeSource, randomness: any Randomness, log: Log) {
        self.request = request
        self.time = time
        self.randomness = randomness
        self.log = log
    }

    var account: FCMServiceAccount { request.account }

    // MARK: PushAuthorization

    func isReady(for pool: PushPool) -> Bool {
        let now = time.instant()
        let (isReady, mustAsk) = state.withLock { state in
            let token = state.usable(at: now)
            if token == nil, !state.waiting.contains(where: { $0.loop === pool.loop && $0.value === pool }) {
                state.waiting.append(LoopBound(pool, on: pool.loop))
            }
            guard !state.isAsking, token?.mustBeRenewed(at: now) ?? true, state.pausedUntil.map({ $0 <= now }) ?? true
            else { return (token != nil, false) }
            state.isAsking = true
            return (token != nil, true)
        }
        if mustAsk { ask(on: pool.loop) }
        return isReady
    }

    func value(later: (@escaping @Sendable () -> Void) -> Void) -> String? {
        let now = time.instant()
        return state.withLock { $0.usable(at: now)?.value }
    }

    func mayFollow(_ value: String) -> Bool { true }

    /// Forgets the token. Only the first of many refused requests has an effect.
    func replace(_ value: String) {
        state.withLock { if $0.token?.value == value { $0.token = nil } }
    }

    func tooMany(_ value: String) {}

    var tokenAge: Duration? {
        let now = time.instant()
        return state.withLock { state in state.token.map { now - $0.at } }
    }

    var failure: AuthorizationFailure? {
        let now = time.instant()
        return state.withLock { $0.usable(at: now) == nil ? $0.failure : nil }
    }

    var nextAttempt: Instant? {
        let now = time.instant()
        return state.withLock { state in
            guard state.usable(at: now) == nil, !state.isAsking, let until = state.pausedUntil, until > now else {
                return nil
            }
            return until
        }
    }

    // MARK: Requests

    private func ask(on loop: EventLoop) {
        loop.spawn { [self] in
            let result = await request.send(on: loop)
            let pause = ended(result)
            tellPools()
            guard let pause else { return }
            loop.schedule(after: pause.length) { [weak self] in self?.askAgain(after: pause.until, on: loop) }
        }
    }

    /// Makes the next attempt after a pause, also if no push waits: without a token the relay is not
    /// ready, and a balancer would send it no logins.
    private func askAgain(after pause: Instant, on loop: EventLoop) {
        let now = time.instant()
        let mustAsk = state.withLock { state in
            if state.pausedUntil == pause { state.pausedUntil = nil }
            guard state.pausedUntil == nil, !state.isAsking, state.usable(at: now)?.mustBeRenewed(at: now) ?? true
            else {
                return false
            }
            state.isAsking = true
            return true
        }
        if mustAsk { ask(on: loop) }
    }

    /// Records the result of a request. Returns the pause before the next one, if there is to be
    /// one.
    private func ended(
        _ result: Result<AccessTokenRequest.Issued, AuthorizationFailure>
    ) -> (length: Duration, until: Instant)? {
        let now = time.instant()
        switch result {
        case .success(let issued):
            state.withLock { state in
                state.isAsking = false
                state.failure = nil
                state.pausedUntil = nil
                state.backoff.succeeded()
                state.token = Token(value: issued.value, at: now, life: issued.life)
            }
            log.info("fcm.token.issued", [.host: account.tokenEndpoint.host])
            return nil
        case .failure(let failure):
            let pause = state.withLock { state -> Duration in
                state.isAsking = false
                state.failure = failure
                // The circuit breaker sets the pause after a refusal, unless an older token is in use.
                if case .refused = failure, state.usable(at: now) == nil {
                    state.pausedUntil = nil
                    return .zero
                }
                let pause = state.backoff.failed(randomness)
                state.pausedUntil = now + pause
                return pause
            }
            log.warning(
                "fcm.token.missing",
                [.host: account.tokenEndpoint.host, .reason: failure.reason, .due: pause.wholeMilliseconds])
            return pause > .zero ? (pause, now + pause) : nil
        }
    }

    /// Tells the pools that wait. Those that still have no token are recorded again.
    private func tellPools() {
        let pools = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for pool in pools { pool.loop.post { pool.value.authorizationChanged() } }
    }
}
