import EventLoop
import HTTP2
import Log
import World

/// A slot for one connection of a pool. It opens the connection when the pool starts, and again
/// whenever the connection is lost.
///
/// Two rules limit the attempts. `HostHealth`, shared by the whole process, spaces attempts and
/// backs off from failing addresses. The slot's own back-off applies when its attempts fail at any
/// address.
final class PushConnectionSlot {
    private enum State {
        case idle
        case waiting(until: Instant, TimerID, Cause)
        /// The number identifies the attempt, so that results of abandoned attempts are ignored.
        case connecting(Int, Attempt?)
        case open(PushConnection)
    }

    private struct Attempt {
        let wire: any PushTransport
        let address: String
        let began: Instant
    }

    private enum Cause {
        /// Other connections are being opened now.
        case stagger
        /// Every address of the host is in its back-off.
        case host
        /// The earlier attempts of this slot failed, at one or several addresses.
        case failures
    }

    private let pool: PushPool
    private let loop: EventLoop
    private let shared: PushSharedState
    private let dial: PushConnector
    private var state = State.idle
    private var attempts = 0
    /// The first failure permits an attempt at another address at once; further failures cause
    /// pauses.
    private var backoff = Backoff(free: 1)

    init(_ pool: PushPool, dial: @escaping PushConnector) {
        self.pool = pool
        self.dial = dial
        loop = pool.loop
        shared = pool.shared
    }

    var connection: PushConnection? { if case .open(let connection) = state { connection } else { nil } }
    /// The address that the slot is connected to or connecting to.
    var address: String? {
        switch state {
        case .connecting(_, let attempt): attempt?.address
        case .open(let connection): connection.address
        case .idle, .waiting: nil
        }
    }
    var isConnecting: Bool { if case .connecting = state { true } else { false } }
    /// The time of the next attempt; nil if no pause is needed. A slot that only gives way to
    /// others counts as nil, since it opens as soon as a push needs it.
    var nextAttempt: Instant? {
        if case .waiting(let until, _, let cause) = state, cause != .stagger { until } else { nil }
    }

    // MARK: Opening

    /// Starts to open the connection.
    ///
    /// - Parameter urgent: whether a push waits and there is no other connection to wait for.
    func open(urgent: Bool) {
        guard case .idle = state, !pool.isClosed else { return }
        let now = loop.now
        let pause = shared.withHostHealth(pool.endpoint) {
            $0.stagger(shared.options.stagger, urgent: urgent, at: now, shared.randomness)
        }
        if pause > .zero { wait(until: now + pause, .stagger) } else { resolve() }
    }

    /// Ends the wait early for a push that has no other connection. Returns whether an attempt
    /// starts.
    func retryNow() -> Bool {
        guard case .waiting(_, let timer, let cause) = state else { return false }
        switch cause {
        case .failures: return false
        case .host:
            let now = loop.now
            guard shared.withHostHealth(pool.endpoint, { $0.isReachable(at: now) }) else { return false }
        case .stagger: break
        }
        loop.cancel(timer)
        state = .idle
        open(urgent: true)
        return true
    }

    private func wait(until moment: Instant, _ cause: Cause) {
        let timer = loop.schedule(at: moment) { [weak self] in
            guard let self else { return }
            state = .idle
            if cause == .stagger { resolve() } else { open(urgent: pool.isInNeed) }
        }
        state = .waiting(until: moment, timer, cause)
        pool.slotWaits()
    }

    private func resolve() {
        attempts += 1
        state = .connecting(attempts, nil)
        let (bound, number, endpoint) = (LoopBound(self, on: loop), attempts, pool.endpoint)
        let began = loop.now
        let resolver = shared.options.resolver
        loop.spawn {
            let found = await resolver(endpoint.host, endpoint.port)
            bound.value.resolved(found, number, began)
        }
    }

    private func resolved(
        _ found: Result<[SocketAddress], ResolverFailure>, _ number: Int, _ began: Instant
    ) {
        guard case .connecting(number, _) = state else { return }
        let now = loop.now
        switch found {
        case .failure(let failure):
            let reason = "cannot resolve: \(failure.reason)"
            shared.withHostHealth(pool.endpoint) { $0.unresolved(reason, began: began, at: now) }
            failed(reason, .zero)
        case .success(let addresses):
            let names = addresses.map(\.description)
            let own = pool.addresses
            let decision = shared.withHostHealth(pool.endpoint) {
                $0.requestOpening(names, own: own, at: now, trial: shared.options.connectTimeout)
            }
            switch decision {
            case .wait(let until): wait(until: until, .host)
            case .go(let name):
                guard let address = addresses.first(where: { $0.description == name }) else { return }
                let wire = dial(address) { [self] failure in dialed(failure, number, name) }
                state = .connecting(number, Attempt(wire: wire, address: name, began: now))
            }
        }
    }

    private func dialed(_ failure: String?, _ number: Int, _ address: String) {
        guard case .connecting(number, let attempt?) = state else {
            shared.withHostHealth(pool.endpoint) { $0.ended(address, wasOpen: false) }
            return
        }
        let wire = attempt.wire
        // The connection may already be lost again.
        guard failure == nil, wire.state == .open else {
            wire.close()
            if let reason = wire.goAwayReason { shared.observer?.goAway(host: pool.endpoint.host, reason: reason) }
            let reason = failure ?? wire.goAwayReason ?? "closed by the server"
            let now = loop.now
            let pause = shared.withHostHealth(pool.endpoint) {
                $0.failed(address, reason, wasOpen: false, began: attempt.began, at: now, shared.randomness)
            }
            return failed(reason, pause)
        }
        shared.withHostHealth(pool.endpoint) { $0.opened(address) }
        let connection = PushConnection(wire, address: address, pool: pool)
        state = .open(connection)
        wire.onStateChange = { [weak self, weak connection] state in
            if let self, let connection { changed(connection, state) }
        }
        wire.onCapacity = { [pool] in pool.pump() }
        shared.log.info(shared.dialect.events.connected, [.host: pool.endpoint.host, .address: address])
        shared.observer?.connected(host: pool.endpoint.host)
        pool.pump()
    }

    // MARK: Failures

    private func changed(_ connection: PushConnection, _ now: ClientState) {
        if connection === self.connection { left(connection) }
        if now == .closed {
            connection.countGoAway()
            connection.ended()
            pool.ended(connection)
        }
    }

    /// Handles the end of the open connection, at its first sign: GOAWAY, replacement or close.
    private func left(_ connection: PushConnection) {
        state = .idle
        pool.retire(connection)
        let reason = connection.endReason
        connection.countGoAway()
        let (now, address) = (loop.now, connection.address)
        guard !connection.wasGood else {
            backoff.succeeded()
            shared.withHostHealth(pool.endpoint) {
                if connection.isSteady { $0.served(address) }
                $0.ended(address, wasOpen: true)
            }
            logFailure(reason, .zero)
            pool.pump()
            return open(urgent: pool.isInNeed)
        }
        let pause = shared.withHostHealth(pool.endpoint) {
            $0.failed(address, reason, wasOpen: true, began: connection.openedAt, at: now, shared.randomness)
        }
        failed(reason, pause)
        pool.pump()
    }

    /// Records a failure and schedules the next attempt.
    ///
    /// - Parameter pause: the pause of the address, for the log only; the slot adds its own
    ///   back-off.
    private func failed(_ reason: String, _ pause: Duration) {
        pool.lastFailure = reason
        logFailure(reason, pause)
        state = .idle
        guard !pool.isClosed else { return }
        let own = backoff.failed(shared.randomness)
        if own > .zero { wait(until: loop.now + own, .failures) } else { open(urgent: pool.isInNeed) }
    }

    private func logFailure(_ reason: String, _ pause: Duration) {
        let fields: LogFields = [
            .host: pool.endpoint.host, .port: pool.endpoint.port, .reason: reason, .due: pause.wholeMilliseconds,
        ]
        if pause > .zero {
            shared.log.warning(shared.dialect.events.disconnected, fields)
        } else {
            shared.log.info(shared.dialect.events.disconnected, fields)
        }
        shared.observer?.disconnected(host: pool.endpoint.host, reason: reason)
    }

    /// Stops all attempts. The pool closes an open connection.
    func stop() {
        switch state {
        case .waiting(_, let timer, _): loop.cancel(timer)
        case .connecting(_, let attempt): attempt?.wire.close()
        case .idle, .open: return
        }
        state = .idle
    }
}
