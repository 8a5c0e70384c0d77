import DeliveryOutcomes
import EventLoop
import HTTP
import HTTP2
import World

/// One connection that was opened, from then until nothing of it is left.
final class APNsConnection {
    /// One that stood for so long was a good one, even if there was nothing to send.
    private static let steady = Duration.seconds(60)
    /// One that is closed after so long without having been given anything was closed for being idle.
    private static let idle = Duration.seconds(10)

    let wire: any APNsTransport
    let address: String
    private let pool: APNsPool
    private let loop: EventLoop
    private let options: APNsOptions
    let openedAt: Instant
    /// When something last came from it,
    private(set) var heardAt: Instant
    /// when the service last did something about a push: a PING is answered by others than those who do the work,
    private var workedAt: Instant
    /// when it was last idle and got something to do,
    private var busySince: Instant
    /// and when it was last used.
    private(set) var usedAt: Instant
    /// It has been given a push.
    private var isUsed = false
    /// It has done some work for us.
    private(set) var hasServed = false
    /// It may have more than one stream: always with a certificate, with a provider token once that has been seen to be
    /// taken.
    private var isProven: Bool
    /// It has been asked whether it still stands, and has not said so yet.
    private(set) var isSuspected = false
    /// How often it has been asked that.
    private var doubts = 0
    private var isDead = false
    /// The service's GOAWAY has been counted.
    private var hasGoneAway = false
    /// It is not its fault that it goes.
    private var isDismissed = false
    private var watchTimer: (id: TimerID, at: Instant)?
    private var endTimer: TimerID?

    init(_ wire: any APNsTransport, address: String, pool: APNsPool) {
        self.wire = wire
        self.address = address
        self.pool = pool
        loop = pool.loop
        options = pool.shared.options
        isProven = pool.identity.token == nil
        openedAt = loop.now
        heardAt = openedAt
        workedAt = openedAt
        busySince = openedAt
        usedAt = openedAt
        watch(until: openedAt + options.keepAlive)
    }

    var isOpen: Bool { wire.state == .open }
    /// Whether it was worth opening.
    var wasGood: Bool { hasServed || isDismissed || isSteady || !isUsed && loop.now - openedAt >= Self.idle }
    var isSteady: Bool { loop.now - openedAt >= Self.steady }
    var endReason: String { isDead ? "no answer to a PING" : wire.goAwayReason ?? "closed" }

    /// How many pushes it would take now.
    var room: Int {
        guard !isProven else { return wire.freeStreams }
        return wire.activeStreams == 0 ? min(1, wire.freeStreams) : 0
    }

    /// Of two that are as sure, the better one has less to do, or has rested longer.
    func isBetter(than other: APNsConnection, at now: Instant) -> Bool {
        let (quiet, otherQuiet) = (isQuiet(at: now), other.isQuiet(at: now))
        if quiet != otherQuiet { return otherQuiet }
        let (load, otherLoad) = (wire.activeStreams, other.wire.activeStreams)
        return load == otherLoad ? usedAt < other.usedAt : load < otherLoad
    }

    func isQuiet(at now: Instant) -> Bool { now - heardAt >= options.quiet }

    // MARK: Pushes

    /// False if it does not take it after all.
    func begin(_ push: PendingPush) -> Bool {
        let (form, bearer) = pool.form()
        guard
            let stream = wire.begin(
                push.request, of: form,
                completion: { [self] result in came(push, result) })
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

    /// Its time is over. False if it has never left.
    func abandon(_ push: PendingPush) -> Bool {
        push.connection = nil
        let isSent = wire.cancel(push.stream)
        if heardAt <= push.sentAt { markSuspected() }
        // With time enough to answer it has answered nothing: another may do better, and what this one carries may still
        // be answered.
        if workedAt <= push.sentAt, loop.now - push.sentAt >= options.suspicion { retire() }
        return isSent
    }

    private func came(_ push: PendingPush, _ result: Result<Response, RequestFailure>) {
        guard !push.isSettled else { return }
        push.connection = nil
        let now = loop.now
        switch result {
        case .success(let response):
            heard(now)
            workedAt = now
            pool.answered(push, APNsAnswer(response), by: self)
        case .failure(.notSent(let reason)):
            // Where it has changed what it allows meanwhile, the two may have crossed: that is nobody's fault.
            if isOpen, wire.settingsReceived == push.settings { retire() }
            pool.refused(push, reason)
        case .failure(.ambiguous(let reason)):
            let isLost = wire.state == .closed
            if !isLost {
                heard(now)
                workedAt = now
            }
            pool.unanswered(push, isLost ? .lost : .reset, isDead ? endReason : reason)
        }
    }

    private func heard(_ now: Instant) {
        heardAt = now
        isSuspected = false
    }

    /// An answer that is given only to whom the service knows.
    func proved() { isProven = true }

    func served() {
        guard !hasServed else { return }
        hasServed = true
        pool.shared.withHostHealth(pool.endpoint) { $0.served(address) }
    }

    // MARK: Doubt

    /// A connection that does not answer a PING is dead.
    func markSuspected() {
        guard !isSuspected, wire.state != .closed else { return }
        isSuspected = true
        doubts += 1
        let doubt = doubts
        wire.ping { [weak self] trip in
            guard let self else { return }
            guard trip == nil else {
                heard(loop.now)
                pool.pump()
                return
            }
            guard wire.state != .closed else { return }
            // It has been heard since, and only this word is late: it is asked again, if it has not been.
            guard isSuspected, doubt == doubts else { return markSuspected() }
            isDead = true
            wire.close()
        }
        // Where all may be dead, none is passed over any more.
        pool.pump()
    }

    /// One timer, for the next moment at which its silence would mean something.
    private func watch(until moment: Instant) {
        if let watchTimer {
            guard moment < watchTimer.at else { return }
            loop.cancel(watchTimer.id)
        }
        watchTimer = (loop.schedule(at: moment) { [weak self] in self?.look() }, moment)
    }

    private func look() {
        watchTimer = nil
        guard wire.state != .closed else { return }
        let now = loop.now
        let isBusy = wire.activeStreams > 0
        let due = isBusy ? max(heardAt, busySince) + options.suspicion : heardAt + options.keepAlive
        guard due <= now else { return watch(until: due) }
        markSuspected()
        watch(until: now + (isBusy ? options.suspicion : options.keepAlive))
    }

    // MARK: The end

    /// A GOAWAY may come when it is not in use any more as well.
    func countGoAway() {
        guard !hasGoneAway, wire.goAwayReason != nil else { return }
        hasGoneAway = true
        pool.shared.observer?.goAway(host: pool.endpoint.host, reason: endReason)
    }

    /// Answers what it has been asked, and is closed when that is over.
    func retire() {
        wire.retire()
        guard endTimer == nil, wire.state != .closed else { return }
        // By then all that it carries has been given up.
        endTimer = loop.schedule(at: loop.now + options.deadline + .seconds(1)) { [weak self] in self?.wire.close() }
    }

    /// It is not wanted any more.
    func dismiss() {
        isDismissed = true
        retire()
    }

    /// To be told when the wire is closed.
    func ended() {
        for timer in [watchTimer?.id, endTimer].compactMap(\.self) { loop.cancel(timer) }
        watchTimer = nil
        endTimer = nil
        wire.onStateChange = nil
        wire.onCapacity = nil
    }
}

extension PendingPush {
    var request: FormedRequest { APNsRequest.own(push) }
}
