import CNghttp2
import EventLoop
import HTTP
import Log
import TLS
import World

/// One client's connection: what nghttp2 tells becomes requests, and answers go back.
public final class ServerConnection: LinkOwner, TurnEnd {
    public let loop: EventLoop
    let limits: ServerLimits
    private let handler: any Handler
    let log: Log
    /// Whose it is; the proxy's, until one has said whose.
    public private(set) var remote: String
    private let isProxied: Bool
    /// Among those of its server, from 1.
    public let number: Int
    let link: Link
    private let scratch: SessionScratch
    /// Until the connection ends, which takes it out of the server again.
    let server: HTTP2Server
    private var keeper: (any ConnectionKeeper)?

    /// What the first SETTINGS say; nil: nothing, and so there is no limit.
    public var streamLimit: UInt32?
    /// Requests above it are not looked at: the client has been told so, or is to be told nothing at all.
    var lastStream = Int32.max

    var session: Session?
    /// The SETTINGS have been submitted.
    private var hasBegun = false
    private var certificate: ClientCertificate?
    private var scanner = FrameScanner(skipping: FrameScanner.preface)
    private var budget: AbuseBudget
    var clock: ConnectionClock
    var timer: (id: TimerID, due: Instant)?
    var streams = StreamTable<ServerStream>()
    /// Streams whose request has not come to its end.
    private var incomplete = 0
    private var pendingBodyBytes = 0
    private var inFlight = 0
    /// A Duration counts in 128 bits, which is felt once for every request.
    private let requestNanoseconds: Int64
    /// Answers that are not all with the peer yet.
    var unsent = 0
    private var flushAtTurnEnd = false
    var drainPing: UInt64?
    var isDraining = false
    var isTerminated = false

    init(server: HTTP2Server, fd: Int32, number: Int, tls: TLSSession?, remote: String, isProxied: Bool) {
        self.server = server
        self.number = number
        loop = server.loop
        limits = server.limits
        handler = server.handler
        log = server.log
        self.remote = remote
        self.isProxied = isProxied
        link = Link(loop: loop, fd: fd, tls: tls, buffers: server.buffers)
        scratch = server.buffers.session
        requestNanoseconds = limits.request.wholeNanoseconds
        streamLimit = limits.streams
        let now = loop.now
        budget = AbuseBudget(capacity: limits.abuseCapacity, perSecond: limits.abusePerSecond, now: now)
        clock = ConnectionClock(limits: limits, now: now)
    }

    func start() {
        do throws(SystemFailure) {
            try link.start(owner: self, introduced: isProxied ? { [unowned self] in introduced($0) } : nil)
        } catch {
            log.warning("connection.refused", [.error: error.description])
            link.end(.finished)
            return
        }
        check()
    }

    private func introduced(_ outcome: Result<ProxyHeader, ProxyHeader.Fault>) {
        switch outcome {
        case .success(.local): break
        case .success(.relayed(let source)): remote = source.host
        case .failure(let fault): server.proxies.refuse(remote, fault, at: loop.now, log)
        }
    }

    /// In place of `start`: it stands, and that is all.
    func ignore() { link.stand(owner: self) }

    // MARK: The link

    func linkIsUp() {
        let session = Session(
            role: .server, headerBytes: limits.headerBytes, headerCount: limits.headerCount, scratch: scratch)
        self.session = session
        certificate = link.peer.map { peer in
            ClientCertificate(
                authority: peer.authority == .websites ? .websites : .phones, uris: peer.uris,
                keyThumbprint: peer.keyThumbprint)
        }
        if let keeper = server.keeper {
            self.keeper = keeper.opened(self)
            // nghttp2 sends SETTINGS ahead of whatever waits.
            if session.wantsWrite { link.flush() }
            // The keeper may have had enough of it.
            guard link.isOpen else { return }
        }
        hasBegun = true
        var settings: [(nghttp2_settings_id, UInt32)] = [
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(limits.headerBytes)),
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        if let streamLimit { settings.append((NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streamLimit)) }
        session.submitSettings(settings)
        session.openWindow(limits.connectionWindow)
        clock.handshakeEnded(loop.now)
        link.flush()
        check()
        if isDraining { beginDrain() }
    }

    func linkReceived(_ bytes: UnsafeRawBufferPointer) {
        guard let session, !isTerminated else { return }
        var cost = 0
        scanner.scan(bytes) { cost += $0.cost }
        let now = loop.now
        clock.active(now)
        if cost > 0, !budget.charge(cost, now: now) {
            calm()
            return
        }
        guard session.receive(bytes) else {
            log.debug("connection.malformed", [.remote: remote])
            link.end(.finished)
            return
        }
        handleEvents(now)
    }

    func linkWants(_ output: inout [UInt8], enough: Int) {
        guard let session else { return }
        guard session.send(into: &output, enough: enough) else {
            output.removeAll()
            link.end(.finished)
            return
        }
        // What has been sent may end streams, and that may ask for more to be sent: the link asks until there is none.
        handleEvents(loop.now)
    }

    func linkIsDrained() -> Bool {
        guard let session, hasBegun else { return false }
        notePending()
        return session.isFinished
    }

    func linkIsBlocked() { notePending() }

    func linkEnded(_ end: LinkEnd) {
        if case .failed(let failure) = end {
            log.debug("connection.failed", [.remote: remote, .error: failure.description])
        }
        if let timer { loop.cancel(timer.id) }
        timer = nil
        let streams = streams.removeAll()
        incomplete = 0
        for stream in streams { stream.exchange?.cancel() }
        // nghttp2 goes before what its streams point to.
        session = nil
        withExtendedLifetime(streams) {}
        keeper?.ended()
        keeper = nil
        server.ended(self)
    }

    public func turnEnded() {
        flushAtTurnEnd = false
        link.flush()
        notePending()
    }

    func flushSoon() {
        guard !flushAtTurnEnd else { return }
        flushAtTurnEnd = true
        loop.atTurnEnd(self)
    }

    // MARK: Events

    private func handleEvents(_ now: Instant) {
        var index = 0
        while index < scratch.events.count, session != nil {
            handle(scratch.events[index], now)
            index += 1
        }
        scratch.clear()
    }

    private func handle(_ event: SessionEvent, _ now: Instant) {
        switch event {
        case .headers(let id, let block): headers(id, block, now)
        case .data(let id, let range): data(id, range)
        case .ended(let id): ended(id)
        case .closed(let id, _): closed(id)
        case .sentData: budget.earn()
        case .sentEnd(let id):
            budget.earn()
            sentEnd(id)
        case .sentReset:
            if !budget.charge(AbuseBudget.reset, now: now) { calm() }
        case .settingsAcknowledged: clock.settingsAcknowledged()
        case .pingAcknowledged(let payload):
            if payload == drainPing { finalGoAway() }
        case .settings, .goAway: break
        }
    }

    private func headers(_ id: Int32, _ block: Int, _ now: Instant) {
        // Trailers: allowed, and of no use to us.
        guard streams[id] == nil else { return }
        let stream = ServerStream(id: id, head: scratch.take(block), began: now)
        streams.add(stream, id)
        incomplete += 1
        if incomplete == 1 { check(by: Instant(nanoseconds: now.nanoseconds + requestNanoseconds)) }
        if stream.head.isTooLarge {
            discard(stream)
            answer(stream, Response(status: 431))
        } else if !stream.head.hasPath {
            // CONNECT: there is nothing behind us to connect to.
            discard(stream)
            answer(stream, Response(status: 405))
        } else if let length = stream.head.contentLength, length > limits.bodyBytes {
            discard(stream)
            answer(stream, handler.tooLarge())
        }
    }

    private func data(_ id: Int32, _ range: Range<Int>) {
        guard let session, let stream = streams[id], !stream.isDiscarded else { return }
        guard stream.body.count + range.count <= limits.bodyBytes else {
            discard(stream)
            answer(stream, handler.tooLarge())
            return
        }
        guard pendingBodyBytes + range.count <= limits.pendingBodyBytes else {
            discard(stream)
            session.submitReset(id, NGHTTP2_REFUSED_STREAM)
            return
        }
        pendingBodyBytes += range.count
        stream.body.append(contentsOf: scratch.inbound[range])
    }

    private func ended(_ id: Int32) {
        guard let session, let stream = streams[id], !stream.isWhole else { return }
        incomplete -= 1
        stream.isWhole = true
        pendingBodyBytes -= stream.body.count
        guard !stream.isDiscarded, id <= lastStream else { return }
        guard inFlight < limits.inFlight else {
            session.submitReset(id, NGHTTP2_REFUSED_STREAM)
            return
        }
        let request = stream.takeRequest(certificate: certificate, remote: remote)
        let reply: Reply?
        if let keeper { reply = keeper.handle(request, stream: id) } else { reply = handler.handle(request) }
        switch reply {
        case .now(let response): answer(stream, response)
        case .later(let deadline, let late, let work): begin(stream, deadline, late, work)
        case nil: break
        }
    }

    private func begin(
        _ stream: ServerStream, _ deadline: Duration, _ late: Response, _ work: @escaping @Sendable () async -> Outcome
    ) {
        inFlight += 1
        let exchange = Exchange(
            loop: loop, deadline: deadline, late: late,
            answer: { [weak self, weak stream] response in
                guard let self, let stream, streams[stream.id] === stream else { return }
                answer(stream, response)
                flushSoon()
            },
            ended: { [weak self] in
                guard let self else { return }
                inFlight -= 1
            })
        stream.exchange = exchange
        if isDraining { exchange.holdNoMore() }
        exchange.start(work)
    }

    private func discard(_ stream: ServerStream) {
        stream.isDiscarded = true
        if !stream.isWhole { pendingBodyBytes -= stream.body.count }
        stream.body = []
    }

    func answer(_ stream: ServerStream, _ response: Response) {
        guard let session, !stream.isAnswered else { return }
        stream.isAnswered = true
        unsent += 1
        stream.outgoing = response.body
        session.submitResponse(stream.id, response, date: server.dateOfTurn(), source: stream)
    }

    private func sentEnd(_ id: Int32) {
        guard let session, let stream = streams[id] else { return }
        stream.isSentToTheEnd = true
        unsent -= 1
        // The answer stands; what the client is still sending would be read for nothing.
        if !stream.isWhole { session.submitReset(id, NGHTTP2_NO_ERROR) }
    }

    private func closed(_ id: Int32) {
        guard let stream = streams.remove(id) else { return }
        if stream.isAnswered, !stream.isSentToTheEnd { unsent -= 1 }
        if !stream.isWhole {
            incomplete -= 1
            pendingBodyBytes -= stream.body.count
        }
        stream.exchange?.cancel()
        keeper?.closed(stream: id)
    }
}
