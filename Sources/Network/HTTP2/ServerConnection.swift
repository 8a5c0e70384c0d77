import CNghttp2
import EventLoop
import HTTP
import Log
import TLS
import World

/// The server's side of one connection: it turns the events of its session into requests, and sends
/// the answers.
///
/// Order of the bytes: `Transport` reads them. `FrameInspector` checks and charges them. `Session`
/// passes them to libnghttp2, and the callbacks append events. `handleEvents` acts on the events
/// after libnghttp2 has returned, so libnghttp2 is never called from within a callback. Answers are
/// submitted during the turn, and written together at its end. Over HTTP/1.1, `HTTP1Session` is in
/// the place of the inspector and libnghttp2, and records the same events.
///
/// `ServerConnectionState` holds the state of the connection, and decides what each event leads to.
///
/// Invariants: at most `allowedStreams` streams are open, `limits.inFlight` requests in work, and
/// `limits.pendingBodyBytes` of bodies incomplete. A stream is answered at most once. A stream
/// that a GOAWAY refuses is not handled. `ConnectionClock` ends the connection if the peer is too
/// slow, and `AbuseBudget` if the peer costs too much.
///
/// Risk: an event may end the connection, so every loop over events checks `session`. libnghttp2
/// points to the `ServerStream` objects as `BodySource`; so the session is freed before them.
/// Tests: `ServerTests`, `HostileTests`, `EarlyAnswerTests`, `StreamLimitTests`, `SlowHeadTests`;
/// with other clients `ToolTests`.
public final class ServerConnection: TransportOwner, TurnEndObserver {
    public let loop: EventLoop
    let limits: ServerLimits
    private let handler: any Handler
    let log: Log
    /// The address of the caller; the balancer's address until its PROXY header has come.
    public private(set) var remote: String
    /// The admission of this connection; nil if the server has no `AdmissionControl`.
    let ticket: AdmissionTicket?
    /// Ordinal of this connection within its server, from 1.
    public let number: Int
    let link: Transport
    private let scratch: SessionScratch
    /// The server, kept alive until the connection ends.
    let server: HTTP2Server
    private var keeper: (any ConnectionController)?

    /// MAX_CONCURRENT_STREAMS in the first SETTINGS; nil: not sent, and no limit.
    public var streamLimit: UInt32?

    /// Unchecked exclusivity: no code that runs during a transition can access it again.
    @exclusivity(unchecked) var state = ServerConnectionState<ServerSession>.accepted
    var session: ServerSession? { state.session }
    /// Whether a whole request has come. The admission counts only the first one.
    private var hasRequested = false
    /// The verified client certificate; nil before the handshake is complete, or if there is none.
    private(set) var certificate: ClientCertificate?
    var inspector: FrameInspector
    private var budget: AbuseBudget
    /// The number of streams that the client may have open. Further ones are refused.
    var allowedStreams = Int.max
    var clock: ConnectionClock
    var timer: (id: TimerID, due: Instant)?
    var streams = StreamTable<ServerStream>()
    /// The number of streams with an incomplete request.
    private var incomplete = 0
    private var pendingBodyBytes = 0
    private var inFlight = 0
    /// The owner of the exchanges; nil until the first one, because many connections have none.
    private var exchanges: ConnectionExchanges?
    /// `limits.request` in nanoseconds, because `Duration` computes in 128 bits, which is
    /// measurable at once per request.
    private let requestNanoseconds: Int64
    /// The number of answers that are not completely sent yet.
    var unsent = 0
    private var flushAtTurnEnd = false
    /// Whether the server stops, and the drain begins as soon as there is a session.
    var drainsOnceOpen = false

    init(
        server: HTTP2Server, fd: Int32, number: Int, tls: TLSServerContext?, remote: String, ticket: AdmissionTicket?
    ) {
        self.ticket = ticket
        self.server = server
        self.number = number
        loop = server.loop
        limits = server.limits
        handler = server.handler
        log = server.log
        self.remote = remote
        link = Transport(loop: loop, fd: fd, server: tls, buffers: server.buffers)
        scratch = server.buffers.session
        requestNanoseconds = limits.request.wholeNanoseconds
        streamLimit = limits.streams
        inspector = FrameInspector(maxBlockBytes: 2 * limits.headerBytes)
        let now = loop.now
        budget = AbuseBudget(capacity: limits.abuseCapacity, perSecond: limits.abusePerSecond, now: now)
        clock = ConnectionClock(limits: limits, now: now)
    }

    /// Starts reading.
    /// - Parameter proxy: the balancer that must send a PROXY header; nil for a direct connection.
    func start(proxy: SocketAddress?) {
        state.start(awaitsProxyHeader: proxy != nil)
        do throws(SystemFailure) {
            bindTicket()
            let reader = proxy.map { proxy -> Transport.Introduced in
                { [weak self] outcome in self?.proxyHeaderRead(outcome, by: proxy) }
            }
            try link.start(owner: self, introduced: reader)
        } catch {
            log.warning("connection.refused", [.error: error.description])
            link.end(.finished)
            return
        }
        check()
    }

    private func proxyHeaderRead(_ outcome: Result<ProxyHeader, ProxyHeader.Fault>, by proxy: SocketAddress) {
        let source: SocketAddress
        switch outcome {
        case .success(.local): source = proxy
        case .success(.relayed(let caller)):
            source = caller
            remote = caller.host
        case .failure(let fault):
            server.proxies.refuse(remote, fault, at: loop.now, log)
            return
        }
        state.proxyHeaderRead()
        if ticket?.proxyHeaderRead(as: source) == false { link.reset() }
    }

    /// Instead of `start`: keeps the socket open without reading or writing.
    func ignore() {
        _ = state.freeze()
        link.stand(owner: self)
    }

    // MARK: The link

    func transportIsUp() {
        state.handshakeCompleted(with: makeSession())
        certificate = link.peer.map { peer in
            ClientCertificate(
                authority: peer.authority == .websites ? .websites : .phones, uris: peer.uris,
                keyThumbprint: peer.keyThumbprint, issuer: peer.issuer, serial: peer.serial,
                notBefore: peer.notBefore, notAfter: peer.notAfter)
        }
        server.identified(self)
        let caller: HandshakeRecord.Caller
        switch certificate?.authority {
        case .websites?:
            ticket?.isWebsite(certificate?.keyThumbprint ?? [])
            caller = .website
        case .phones?:
            ticket?.isPhone(certificate?.keyThumbprint ?? [])
            caller = .phone
        case nil: caller = .unidentified
        }
        server.record?.complete(by: caller, resumed: link.isResumed)
        if let keeper = server.keeper {
            self.keeper = keeper.opened(self)
            // nghttp2 sends SETTINGS before anything that waits in its queue.
            if case .http2(let session)? = session, session.wantsWrite { link.flush() }
        }
        guard state.finishOpening() else { return }
        clock.handshakeEnded(loop.now)
        switch session {
        case .http2(let session)?: submitSettings(session)
        // There are no settings.
        case .http1?: clock.settingsAcknowledged()
        case nil: return
        }
        link.flush()
        check()
        if drainsOnceOpen { beginDrain() }
    }

    private func makeSession() -> ServerSession {
        guard link.isHTTP1 else {
            return .http2(
                Session(
                    role: .server, headerBytes: limits.headerBytes, headerCount: limits.headerCount, scratch: scratch))
        }
        return .http1(makeHTTP1Session(scratch))
    }

    private func submitSettings(_ session: Session) {
        let settings: [(nghttp2_settings_id, UInt32)] = [
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(limits.headerBytes)),
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        if let streamLimit { allowedStreams = Int(streamLimit) }
        session.submitSettings(settings, streams: streamLimit)
        session.openWindow(limits.connectionWindow)
    }

    func transportReceived(_ bytes: UnsafeRawBufferPointer) {
        guard let session = state.receivingSession else { return }
        let now = loop.now
        clock.active(now)
        switch session {
        case .http2(let session): guard receiveFrames(bytes, session, now) else { return }
        case .http1(let session):
            session.receive(bytes, now)
            noteHeads(of: session, now)
        }
        handleEvents(now)
        charge(session.takeHeaderCharges(), now)
    }

    /// Gives the bytes to libnghttp2. Returns false if the connection ends.
    private func receiveFrames(_ bytes: UnsafeRawBufferPointer, _ session: Session, _ now: Instant) -> Bool {
        let finding = inspector.inspect(bytes, now: now, ignoresStreams: state.ignoresStreams) { streams[$0] != nil }
        guard charge(finding.cost, now) else { return false }
        if let violation = finding.violation {
            end(violation)
            return false
        }
        if inspector.incompleteSince == now { check(by: requestLimit(now)) }
        guard session.receive(bytes) else {
            log.debug("connection.malformed", [.remote: remote])
            link.end(.finished)
            return false
        }
        return true
    }

    func transportUpdatedKeys(_ count: Int) { charge(count * AbuseBudget.keyUpdate, loop.now) }

    /// Charges the abuse budget. Returns false if it is used up, and then ends the connection.
    @discardableResult
    func charge(_ cost: Int, _ now: Instant) -> Bool {
        guard cost > 0, !budget.charge(cost, now: now) else { return true }
        calm()
        return false
    }

    func requestLimit(_ began: Instant) -> Instant { Instant(nanoseconds: began.nanoseconds + requestNanoseconds) }

    func transportOutput(_ output: inout [UInt8], enough: Int) {
        guard let session else { return }
        let hasStreams = !streams.isEmpty
        guard session.send(into: &output, enough: enough) else {
            output.removeAll()
            link.end(.finished)
            return
        }
        // Sent frames may end streams, and then more must be sent: the transport asks until there
        // is no more.
        handleEvents(loop.now)
        if case .http1(let session) = session { goOn(session, hasEnded: hasStreams && streams.isEmpty) }
        // The shutdown notice leaves in one piece with the answer before it.
        guard state.isDraining else { return }
        guard session.send(into: &output, enough: enough) else {
            link.end(.finished)
            return
        }
        handleEvents(loop.now)
    }

    func transportIsDrained() -> Bool {
        guard state.mayLinger, let session else { return false }
        notePending()
        guard session.isFinished else { return false }
        state.linger()
        return true
    }

    func transportIsBlocked() { notePending() }

    func transportEnded(_ end: TransportEnd) {
        if case .failed(let failure) = end {
            log.debug("connection.failed", [.remote: remote, .error: failure.description])
            if case .tls(let fault) = failure, let certificate = fault.certificate {
                server.record?.refuse(certificate, from: remote)
            }
        }
        if let timer { loop.cancel(timer.id) }
        timer = nil
        let streams = streams.removeAll()
        incomplete = 0
        for stream in streams { stream.exchange?.cancel() }
        // nghttp2 points to the streams, so it is freed before them.
        state.end()
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

    func handleEvents(_ now: Instant) {
        var index = 0
        while index < scratch.events.count, state.hasSession {
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
        case .malformed(let id, let fault): if let stream = streams[id] { refuse(stream, fault) }
        case .closed(let id, _): closed(id)
        case .sentData: budget.earn()
        case .sentEnd(let id):
            budget.earn()
            sentEnd(id)
        case .refused(let id): inspector.noteReset(id)
        case .sentReset(let id):
            inspector.noteReset(id)
            charge(AbuseBudget.reset, now)
        case .settingsAcknowledged: clock.settingsAcknowledged()
        case .pingAcknowledged(let payload):
            if payload == Self.drainPing { drainPingAcknowledged() }
        case .settings, .goAway: break
        }
    }

    private func headers(_ id: Int32, _ block: Int, _ now: Instant) {
        let began = inspector.takeHeadBegan(now)
        // Trailers: allowed, and not used.
        guard streams[id] == nil else { return }
        guard streams.count < allowedStreams else {
            inspector.noteReset(id)
            session?.submitReset(id, NGHTTP2_REFUSED_STREAM)
            return
        }
        let head = scratch.take(block)
        let stream = ServerStream(id: id, head: head, began: began)
        streams.add(stream, id)
        incomplete += 1
        if incomplete == 1 { check(by: requestLimit(began)) }
        if let fault = head.fault {
            refuse(stream, fault)
        } else if !head.hasPath {
            // CONNECT: this server connects to no other servers.
            discard(stream)
            answer(stream, Response(status: 405))
        } else if let length = head.contentLength, length > limits.bodyBytes {
            refuse(stream, .bodySize)
        }
    }

    func refuse(_ stream: ServerStream, _ fault: RequestFault) {
        log.debug("request.refused", [.remote: remote, .reason: fault.rawValue])
        discard(stream)
        answer(stream, handler.refuse(fault, stream.fields, hasCertificate: certificate != nil))
    }

    private func data(_ id: Int32, _ range: Range<Int>) {
        guard let stream = streams[id] else { return }
        guard !stream.isDiscarded else {
            stream.dropped += range.count
            if stream.dropped > limits.droppedBodyBytes { resetAnswered(stream) }
            return
        }
        guard stream.body.count + range.count <= limits.bodyBytes else { return refuse(stream, .bodySize) }
        guard pendingBodyBytes + range.count <= limits.pendingBodyBytes else {
            discard(stream)
            refuseUnprocessed(stream)
            return
        }
        pendingBodyBytes += range.count
        stream.body.append(contentsOf: scratch.inbound[range])
    }

    private func ended(_ id: Int32) {
        guard let stream = streams[id], !stream.isWhole else { return }
        incomplete -= 1
        stream.isWhole = true
        pendingBodyBytes -= stream.body.count
        guard !stream.isDiscarded, state.handles(id) else { return }
        guard inFlight < limits.inFlight else { return refuseUnprocessed(stream) }
        var request = stream.takeRequest(certificate: certificate, remote: remote)
        request.identification = ticket
        if !hasRequested {
            hasRequested = true
            ticket?.requested()
        }
        let reply: Reply?
        if let keeper { reply = keeper.handle(request, stream: id) } else { reply = handler.handle(request) }
        switch reply {
        case .now(let response): answer(stream, response)
        case .later(let deadline, let late, let work): begin(stream, deadline, late, work)
        case nil: break
        }
    }

    private func begin(
        _ stream: ServerStream, _ deadline: Duration, _ late: @escaping @Sendable () -> Response,
        _ work: @escaping @Sendable () async -> Outcome
    ) {
        inFlight += 1
        server.workBegan()
        let exchange = Exchange(stream.id, of: exchangeOwner(), deadline: deadline, late: late)
        stream.exchange = exchange
        if state.isDraining { exchange.finishHolding() }
        exchange.start(work)
    }

    private func exchangeOwner() -> ConnectionExchanges {
        if let exchanges { return exchanges }
        let made = ConnectionExchanges(self)
        exchanges = made
        return made
    }

    func exchangeEnded() { inFlight -= 1 }

    private func discard(_ stream: ServerStream) {
        stream.isDiscarded = true
        if !stream.isWhole { pendingBodyBytes -= stream.body.count }
        stream.body = []
    }

    func answer(_ stream: ServerStream, _ response: Response) {
        guard let session, !stream.isAnswered else { return }
        stream.isAnswered = true
        unsent += 1
        stream.prepare(response)
        session.submitResponse(
            stream.id, response, length: response.body.count, date: server.dateOfTurn(), source: stream)
    }

    private func sentEnd(_ id: Int32) {
        guard let stream = streams[id] else { return }
        stream.isSentToTheEnd = true
        unsent -= 1
        // The rest of the request is read and dropped, except in a drain.
        if !stream.isWhole, state.isDraining { resetAnswered(stream) }
    }

    /// Asks the client to stop sending a request that has been answered.
    func resetAnswered(_ stream: ServerStream) {
        reset(stream, stream.isSentToTheEnd ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL)
    }

    func reset(_ stream: ServerStream, _ code: nghttp2_error_code) {
        guard let session, !stream.isReset else { return }
        stream.isReset = true
        inspector.noteReset(stream.id)
        session.submitReset(stream.id, code)
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
        if state.isDraining, streams.isEmpty { lastStreamEnded() }
    }
}
