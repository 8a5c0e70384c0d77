import EventLoop
import HTTP2
import Log
import TLS
import World

/// One loop's connection to one host: opened when it is first wanted, and again whenever it is lost, so that the next
/// push finds it open. Lives on its loop.
final class APNsLine {
    enum Ticket: Sendable {
        case connection(LoopBound<HTTP2Client>)
        /// There will be none before `pause` is over.
        case refused(pause: Duration, reason: String)
    }

    /// A connection that has been quiet for so long is asked whether it still stands.
    private static let quiet = Duration.seconds(300)
    private static let keepAlive = Duration.seconds(3600)
    /// A connection that stood for so long was a good one, even if there was nothing to send.
    private static let steady = Duration.seconds(60)

    private struct Waiter {
        let number: Int
        let end: Instant
        let timer: TimerID
        let continuation: UnsafeContinuation<Ticket, Never>
    }

    let endpoint: APNsEndpoint
    private let loop: EventLoop
    private let tls: TLSClientContext
    private let options: ClientOptions
    private let randomness: any Randomness
    private let log: Log
    private let report: (String?) -> Void

    /// Open, and not replaced.
    private var client: HTTP2Client?
    private var opening: HTTP2Client?
    private var openedAt = Instant(nanoseconds: 0)
    private var usedAt = Instant(nanoseconds: 0)
    private var backoff = Backoff()
    /// Until then the host is left alone.
    private var pausedUntil: Instant?
    private var pauseTimer: TimerID?
    private var keepAliveTimer: TimerID?
    private var lastFailure = "not connected"
    private var waiters: [Waiter] = []
    private var numbers = 0
    private var isSuspected = false
    private var isClosed = false

    /// `report` is told why the host cannot be reached, and nil when it can.
    init(
        endpoint: APNsEndpoint, loop: EventLoop, tls: TLSClientContext, options: ClientOptions,
        randomness: any Randomness, log: Log, report: @escaping (String?) -> Void
    ) {
        self.endpoint = endpoint
        self.loop = loop
        self.tls = tls
        self.options = options
        self.randomness = randomness
        self.log = log
        self.report = report
    }

    // MARK: For those who send

    /// The open connection, or the next one that is opened before `end`.
    func connection(until end: Instant) async -> Ticket {
        let now = loop.time.instant()
        if let client {
            if now - usedAt > Self.quiet { suspect(client) }
            usedAt = now
            return .connection(LoopBound(client, on: loop))
        }
        guard !isClosed else { return .refused(pause: .seconds(1), reason: "closed") }
        if let pausedUntil, pausedUntil >= end {
            return .refused(pause: max(pausedUntil - now, .seconds(1)), reason: lastFailure)
        }
        return await withUnsafeContinuation { continuation in
            numbers += 1
            let number = numbers
            let timer = loop.schedule(after: end - now) { [weak self] in self?.giveUp(number) }
            waiters.append(Waiter(number: number, end: end, timer: timer, continuation: continuation))
            open()
        }
    }

    /// The host has done its work on a request.
    func served() { backoff.succeeded() }

    /// What it carries is still answered; nothing new is sent on it.
    func replace(_ client: HTTP2Client) { client.retire() }

    /// An answer is overdue, or there was none: a connection that does not answer a PING either is dead.
    func suspect(_ client: HTTP2Client) {
        guard client === self.client, !isSuspected else { return }
        isSuspected = true
        let bound = LoopBound((line: self, client: client), on: loop)
        loop.spawn {
            let answered = await bound.value.client.ping() != nil
            let (line, client) = bound.value
            guard client === line.client else { return }
            line.isSuspected = false
            if !answered { client.close() }
        }
    }

    func open() {
        guard client == nil, opening == nil, pausedUntil == nil, !isClosed else { return }
        let client = HTTP2Client(
            loop: loop, host: endpoint.host, port: endpoint.port, tls: tls, options: options, log: log)
        opening = client
        let bound = LoopBound((line: self, client: client), on: loop)
        loop.spawn {
            var failure: String?
            do throws(ConnectionFailure) { try await bound.value.client.connect() } catch {
                failure = error.description
            }
            bound.value.line.came(bound.value.client, failure)
        }
    }

    func close() {
        isClosed = true
        for timer in [pauseTimer, keepAliveTimer].compactMap(\.self) { loop.cancel(timer) }
        pauseTimer = nil
        keepAliveTimer = nil
        client?.close()
        opening?.close()
        let left = waiters
        waiters = []
        for waiter in left { settle(waiter, .refused(pause: .seconds(1), reason: "closed")) }
    }

    // MARK: What becomes of connections

    private func came(_ client: HTTP2Client, _ failure: String?) {
        opening = nil
        guard !isClosed else { return client.close() }
        if failure == nil, client.state == .open { return opened(client) }
        // It may have been lost again before anybody could use it.
        client.close()
        lost(failure ?? client.goAwayReason ?? "closed by the server")
    }

    private func opened(_ client: HTTP2Client) {
        self.client = client
        isSuspected = false
        openedAt = loop.time.instant()
        usedAt = openedAt
        client.onStateChange = { [weak self, unowned client] _ in self?.ended(client) }
        log.info("apns.connected", [.host: endpoint.host, .address: client.remoteAddress?.description])
        report(nil)
        keepAlive()
        let ready = waiters
        waiters = []
        for waiter in ready { settle(waiter, .connection(LoopBound(client, on: loop))) }
    }

    /// It went away, was replaced, or is closed: whichever comes first.
    private func ended(_ client: HTTP2Client) {
        guard client === self.client else { return }
        self.client = nil
        if let keepAliveTimer { loop.cancel(keepAliveTimer) }
        keepAliveTimer = nil
        guard !isClosed else { return }
        if loop.time.instant() - openedAt >= Self.steady { backoff.succeeded() }
        lost(client.goAwayReason ?? (client.state == .closed ? "closed" : "replaced"))
    }

    private func lost(_ reason: String) {
        lastFailure = reason
        let pause = backoff.failed(randomness)
        let fields: LogFields = [
            .host: endpoint.host, .port: endpoint.port, .reason: reason, .due: pause.wholeMilliseconds,
        ]
        if pause > .zero {
            log.warning("apns.disconnected", fields)
            report(reason)
        } else {
            log.info("apns.disconnected", fields)
        }
        let next = loop.time.instant() + pause
        pausedUntil = next
        // On a later turn even without a pause: this one may be in the middle of the connection that was lost.
        pauseTimer = loop.schedule(after: pause) { [weak self] in
            guard let self else { return }
            pauseTimer = nil
            pausedUntil = nil
            open()
        }
        let hopeless = waiters.filter { $0.end <= next }
        waiters.removeAll { $0.end <= next }
        for waiter in hopeless { settle(waiter, .refused(pause: max(pause, .seconds(1)), reason: reason)) }
    }

    private func keepAlive() {
        keepAliveTimer = loop.schedule(after: Self.keepAlive) { [weak self] in
            guard let self, let client else { return }
            suspect(client)
            keepAlive()
        }
    }

    private func giveUp(_ number: Int) {
        guard let index = waiters.firstIndex(where: { $0.number == number }) else { return }
        settle(waiters.remove(at: index), .refused(pause: .seconds(1), reason: "no connection in time"))
    }

    private func settle(_ waiter: Waiter, _ ticket: Ticket) {
        loop.cancel(waiter.timer)
        waiter.continuation.resume(returning: ticket)
    }
}
