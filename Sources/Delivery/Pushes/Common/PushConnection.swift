import DeliveryOutcomes
import EventLoop
import HTTP
import HTTP2
import World

/// A connection of a pool, from its opening until it is closed.
///
/// Its purpose is to find a dead connection quickly, since a push has only seconds and TCP reports
/// a silent loss late. The connection is suspected, and a PING is sent, in these cases:
/// - It owes an answer and nothing has arrived for `PushOptions.suspicion`.
/// - It is used after `quiet` without traffic.
/// - Nothing has arrived for `keepAlive`.
/// - A push reached its deadline and nothing has arrived since that push was sent.
///
/// If no answer to the PING arrives, the connection is closed. While other connections are not
/// suspected, the pool gives no pushes to a suspected one.
///
/// Invariant: a PING shows only that the network and the front server work. The connection is
/// therefore also retired when a push times out, had at least `suspicion` for its answer, and no
/// push was answered or reset meanwhile. A retired connection takes no new pushes and closes after
/// all its pushes have ended.
///
/// With a token, a connection carries one stream at a time until an answer proves the
/// credential. A refused token thus costs one push instead of a full connection.
///
/// Tests: `ConnectionTests`, `UnresponsiveConnectionTests`, `IdleEndTests` and
/// `PoolSimulationTests`.
final class PushConnection {
    /// A connection that stays open for this long counts as good, even if it sent nothing.
    private static let steady = Duration.seconds(60)
    /// An unused connection that closes after this long was closed for being idle, which is no
    /// fault.
    private static let idle = Duration.seconds(10)

    let wire: any PushTransport
    let address: String
    private let pool: PushPool
    private let loop: EventLoop
    private let options: PushOptions
    let openedAt: Instant
    /// The time at which anything last arrived on this connection.
    private(set) var heardAt: Instant
    /// The time at which the service last answered or reset a push. A PING does not count, because
    /// another part of the service answers it.
    private var workedAt: Instant
    /// The time of the last change from idle to busy.
    private var busySince: Instant
    /// The time at which the last push was sent on it.
    private(set) var usedAt: Instant
    /// Whether it was ever given a push.
    private var isUsed = false
    /// Whether it has answered a push without a fault of the connection.
    private(set) var hasServed = false
    /// Whether it may carry more than one stream: always with a certificate, and with a
    /// token once the service has accepted that token.
    private var isProven: Bool
    /// Whether a PING was sent and nothing has arrived since.
    private(set) var isSuspected = false
    /// The number of PINGs sent; it identifies the latest one.
    private var pings = 0
    private var isDead = false
    /// Whether the GOAWAY of the service was counted.
    private var hasGoneAway = false
    /// Whether the relay itself decided to close it, so that its end is no failure.
    private var isDismissed = false
    private var watchTimer: (id: TimerID, at: Instant)?
    private var endTimer: TimerID?

    init(_ wire: any PushTransport, address: String, pool: PushPool) {
        self.wire = wire
        self.address = address
        self.pool = pool
        loop = pool.loop
        options = pool.shared.options
        isProven = pool.identity.authorization == nil
        openedAt = loop.now
        heardAt = openedAt
        workedAt = openedAt
        busySince = openedAt
        usedAt = openedAt
        watch(until: openedAt + options.keepAlive)
    }

    var isOpen: Bool { wire.state == .open }
    /// Whether its end is no failure of the address: it served, was dismissed, stayed open, or was
    /// closed for being idle.
    var wasGood: Bool { hasServed || isDismissed || isSteady || !isUsed && loop.now - openedAt >= Self.idle }
    var isSteady: Bool { loop.now - openedAt >= Self.steady }
    var endReason: String { isDead ? "no answer to a PING" : wire.goAwayReason ?? "closed" }

    /// The number of pushes that it would take now.
    var room: Int {
        guard !isProven else { return wire.freeStreams }
        return wire.activeStreams == 0 ? min(1, wire.freeStreams) : 0
    }

    /// Returns whether this connection is the better choice. The first difference decides: not
    /// quiet, fewer streams, used less recently.
    func isBetter(than other: PushConnection, at now: Instant) -> Bool {
        let (quiet, otherQuiet) = (isQuiet(at: now), other.isQuiet(at: now))
        if quiet != otherQuiet { return otherQuiet }
        let (load, otherLoad) = (wire.activeStreams, other.wire.activeStreams)
        return load == otherLoad ? usedAt < other.usedAt : load < otherLoad
    }

    func isQuiet(at now: Instant) -> Bool { now - heardAt >= options.quiet }

    // MARK: Pushes

    /// Sends the push. Returns false if the connection does not take it.
    func begin(_ push: PendingPush) -> Bool {
        guard let (form, bearer) = pool.form(),
            let stream = wire.begin(
                push.push.request(at: pool.shared.time.now()), of: form,
                completion: { [self] result in completed(push, result) })
        else { return false }
        let now = loop.now
        isUsed = true
        push.connection = self
        push.stream = stream
        push.bearer = bearer
        push.settings = wire.settingsReceived
        push.sentAt = now
        usedAt = now
        if wire.activeStreams == 1 {
            busySince = now
            watch(until: now + options.suspicion)
        }
        if isQuiet(at: now) { markSuspected() }
        return true
    }

    /// Gives up a push whose deadline has passed. Returns false if the push was never sent in full.
    func abandon(_ push: PendingPush) -> Bool {
        push.connection = nil
        let isSent = wire.cancel(push.stream)
        if heardAt <= push.sentAt { markSuspected() }
        // It had enough time and answered nothing. Another connection may do better, and the pushes
        // that this one carries may still be answered.
        if workedAt <= push.sentAt, loop.now - push.sentAt >= options.suspicion { retire() }
        return isSent
    }

    private func completed(_ push: PendingPush, _ result: Result<Response, RequestFailure>) {
        guard !push.isSettled else { return }
        push.connection = nil
        let now = loop.now
        switch result {
        case .success(let response):
            recordArrival(now)
            workedAt = now
            pool.answered(push, pool.shared.dialect.answer(response, at: pool.shared.time.now()), by: self)
        case .failure(.notSent(let reason)):
            // If the service changed its SETTINGS meanwhile, the request and the change may have
            // crossed: that is no fault of the connection.
            if isOpen, wire.settingsReceived == push.settings { retire() }
            pool.refused(push, reason)
        case .failure(.ambiguous(let reason)):
            let isLost = wire.state == .closed
            if !isLost {
                recordArrival(now)
                workedAt = now
            }
            pool.unanswered(push, isLost ? .lost : .reset, isDead ? endReason : reason)
        }
    }

    private func recordArrival(_ now: Instant) {
        heardAt = now
        isSuspected = false
    }

    /// Records that the service accepted the credential, and so allows further streams.
    func proved() { isProven = true }

    func served() {
        guard !hasServed else { return }
        hasServed = true
        pool.shared.withHostHealth(pool.endpoint) { $0.served(address) }
    }

    // MARK: Suspicion

    /// Sends a PING. The connection is closed if nothing arrives in answer to it.
    func markSuspected() {
        guard !isSuspected, wire.state != .closed else { return }
        isSuspected = true
        pings += 1
        let ping = pings
        wire.ping { [weak self] trip in
            guard let self else { return }
            guard trip == nil else {
                recordArrival(loop.now)
                pool.pump()
                return
            }
            guard wire.state != .closed else { return }
            // Something arrived meanwhile, so only this PING is late: send another one, unless a
            // later PING is already under way.
            guard isSuspected, ping == pings else { return markSuspected() }
            isDead = true
            wire.close()
        }
        // If all connections are suspected, the pool uses them all again.
        pool.pump()
    }

    /// Schedules the one timer, for the next time at which silence would be suspicious.
    private func watch(until moment: Instant) {
        if let watchTimer {
            guard moment < watchTimer.at else { return }
            loop.cancel(watchTimer.id)
        }
        watchTimer = (loop.schedule(at: moment) { [weak self] in self?.checkSilence() }, moment)
    }

    private func checkSilence() {
        watchTimer = nil
        guard wire.state != .closed else { return }
        let now = loop.now
        let isBusy = wire.activeStreams > 0
        let due = isBusy ? max(heardAt, busySince) + options.suspicion : heardAt + options.keepAlive
        guard due <= now else { return watch(until: due) }
        markSuspected()
        watch(until: now + (isBusy ? options.suspicion : options.keepAlive))
    }

    // MARK: Closing

    /// Counts the GOAWAY once. It may also arrive after the connection was retired.
    func countGoAway() {
        guard !hasGoneAway, wire.goAwayReason != nil else { return }
        hasGoneAway = true
        pool.shared.observer?.goAway(host: pool.endpoint.host, reason: endReason)
    }

    /// Takes no more pushes. The connection closes when all its pushes have ended.
    func retire() {
        wire.retire()
        guard endTimer == nil, wire.state != .closed else { return }
        // By then all pushes that it carries have reached their deadlines.
        endTimer = loop.schedule(at: loop.now + options.deadline + .seconds(1)) { [weak self] in self?.wire.close() }
    }

    /// Retires a connection that is no longer wanted, without counting its end as a failure.
    func dismiss() {
        isDismissed = true
        retire()
    }

    /// Releases timers and callbacks; called when the transport is closed.
    func ended() {
        for timer in [watchTimer?.id, endTimer].compactMap(\.self) { loop.cancel(timer) }
        watchTimer = nil
        endTimer = nil
        wire.onStateChange = nil
        wire.onCapacity = nil
    }
}
