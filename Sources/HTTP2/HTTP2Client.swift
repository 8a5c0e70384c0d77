import CNghttp2
import EventLoop
import HTTP
import Log
import TLS
import World

/// One connection to one server. Lives on its loop and is used there only; carry it in a `LoopBound`.
public final class HTTP2Client {
    let loop: EventLoop
    let host: String
    let port: UInt16
    let tls: TLSClientContext?
    let options: ClientOptions
    let log: Log
    let buffers = SharedBuffers()

    public internal(set) var state = ClientState.connecting {
        didSet { if state != oldValue { onStateChange?(state) } }
    }
    public var onStateChange: ((ClientState) -> Void)?
    /// What the server said with its GOAWAY.
    public private(set) var goAwayReason: String?
    /// The machine behind the name that it is connected to.
    public internal(set) var remoteAddress: SocketAddress?

    var link: Link?
    /// Waits for the server's SETTINGS.
    var opening: ((ConnectionFailure?) -> Void)?
    var isConnecting = false
    private var session: Session?
    private var scanner = FrameScanner(skipping: 0)
    private var budget: AbuseBudget
    /// Those in `queue` wait for a stream; completed ones are passed over when their turn comes.
    private var queue: [PendingRequest] = []
    private var queueStart = 0
    private var waiting = 0
    private var streams: [Int32: PendingRequest] = [:]
    private var hasSettings = false
    private var pings: [UInt64: (Duration?) -> Void] = [:]
    private var lastPing: UInt64 = 0
    private var flushAtTurnEnd = false

    /// Without `tls` (for tests only) the server must know that this is HTTP/2.
    public init(
        loop: EventLoop, host: String, port: UInt16, tls: TLSClientContext?, options: ClientOptions = ClientOptions(),
        log: Log
    ) {
        self.loop = loop
        self.host = host
        self.port = port
        self.tls = tls
        self.options = options
        self.log = log
        budget = AbuseBudget(
            capacity: options.abuseCapacity, perSecond: options.abusePerSecond, now: loop.time.instant())
    }

    /// Requests with a stream.
    public var activeStreams: Int { streams.count }
    /// Requests that wait for a stream.
    public var queuedRequests: Int { waiting }

    /// How many streams the server allows now: one until it has said so.
    public var peerMaxConcurrentStreams: Int {
        guard let session, hasSettings else { return 1 }
        return min(options.maxStreams, Int(session.remoteSetting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)))
    }

    // MARK: Requests

    /// Never throws and always comes back, at `deadline` at the latest.
    public func send(_ request: ClientRequest, deadline: Duration) async -> Result<Response, RequestFailure> {
        await withUnsafeContinuation { continuation in
            send(request, deadline: deadline) { continuation.resume(returning: $0) }
        }
    }

    /// The same without a task. `completion` is called once, on the loop, perhaps before this returns.
    public func send(
        _ request: ClientRequest, deadline: Duration,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        let pending = PendingRequest(request, completion: completion)
        guard state == .open || state == .connecting else {
            pending.complete(.failure(.notSent("the connection is \(state)")), on: loop)
            return
        }
        guard waiting < options.maxQueued else {
            pending.complete(.failure(.notSent("too many requests wait")), on: loop)
            return
        }
        pending.timer = loop.schedule(after: deadline) { [weak self, weak pending] in
            guard let self, let pending else { return }
            pending.timer = nil
            overdue(pending)
        }
        queue.append(pending)
        waiting += 1
        submitWaiting()
    }

    private func submitWaiting() {
        guard let session, state == .open else { return }
        let limit = peerMaxConcurrentStreams
        guard waiting > 0, streams.count < limit else { return }
        while waiting > 0, streams.count < limit {
            let pending = queue[queueStart]
            queueStart += 1
            if pending.isCompleted { continue }
            waiting -= 1
            submit(pending, session)
        }
        if queueStart == queue.count {
            queue.removeAll(keepingCapacity: queue.capacity <= 1024)
            queueStart = 0
        } else if queueStart > 1024 {
            queue.removeFirst(queueStart)
            queueStart = 0
        }
        flushSoon()
    }

    private func submit(_ pending: PendingRequest, _ session: Session) {
        if !pending.request.body.isEmpty { pending.source = BodySource(pending.request.body) }
        let id = session.submitRequest(
            pending.request, scheme: tls == nil ? "http" : "https", source: pending.source)
        guard id > 0 else {
            // The numbers of this connection are used up, or it is at its end.
            pending.complete(.failure(.notSent("no stream")), on: loop)
            retire()
            return
        }
        pending.stream = id
        streams[id] = pending
    }

    private func overdue(_ pending: PendingRequest) {
        if let stream = pending.stream {
            session?.submitReset(stream, NGHTTP2_CANCEL)
            flushSoon()
            pending.complete(.failure(.ambiguous("no answer in time")), on: loop)
        } else {
            waiting -= 1
            pending.complete(.failure(.notSent("no stream in time")), on: loop)
        }
    }

    // MARK: The connection

    /// The time of a round trip; nil if none came back in `options.pingTimeout`, or the connection ended.
    public func ping() async -> Duration? {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        guard let session else { return nil }
        lastPing += 1
        let payload = lastPing
        let start = loop.time.instant()
        return await withUnsafeContinuation { continuation in
            let timer = loop.schedule(after: options.pingTimeout) { [weak self] in
                self?.pings.removeValue(forKey: payload)?(nil)
            }
            pings[payload] = { [loop] duration in
                loop.cancel(timer)
                continuation.resume(returning: duration.map { _ in loop.time.instant() - start })
            }
            session.submitPing(payload)
            flushSoon()
        }
    }

    /// Sends nothing new; closes when what was sent has been answered.
    public func retire() {
        guard state == .open || state == .connecting else { return }
        state = .goingAway
        failWaiting("the connection is going away")
        flushSoon()
    }

    /// Ends it now. What was sent is ambiguous.
    public func close() {
        guard state != .closed else { return }
        state = .closed
        session?.terminate(NGHTTP2_NO_ERROR)
        link?.flush()
        if let link { link.end(.finished) } else { tearDown("closed") }
    }

    private func flushSoon() {
        guard !flushAtTurnEnd, link != nil else { return }
        flushAtTurnEnd = true
        loop.atTurnEnd(self)
    }

    private func failWaiting(_ reason: String) {
        let left = queue[queueStart...]
        queue = []
        queueStart = 0
        waiting = 0
        for pending in left { pending.complete(.failure(.notSent(reason)), on: loop) }
    }

    private func tearDown(_ reason: String) {
        let failed = streams
        streams = [:]
        session = nil
        link = nil
        hasSettings = false
        state = .closed
        failWaiting(reason)
        for pending in failed.values.sorted(by: { ($0.stream ?? 0) < ($1.stream ?? 0) }) {
            pending.complete(.failure(.ambiguous(reason)), on: loop)
        }
        let asked = pings
        pings = [:]
        for answer in asked.values { answer(nil) }
    }
}

extension HTTP2Client: TurnEnd {
    public func turnEnded() {
        flushAtTurnEnd = false
        link?.flush()
    }
}

extension HTTP2Client: LinkOwner {
    func linkIsUp() {
        let session = Session(
            role: .client, headerBytes: options.responseHeaderBytes, headerCount: options.responseHeaderCount,
            scratch: buffers.session)
        self.session = session
        session.submitSettings(
            [
                (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
                (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(options.responseHeaderBytes)),
            ], connectionWindow: 1_048_576)
        link?.flush()
    }

    func linkReceived(_ bytes: UnsafeRawBufferPointer) {
        guard let session else { return }
        var cost = 0
        scanner.scan(bytes) { cost += $0.cost }
        if cost > 0, !budget.charge(cost, now: loop.time.instant()) {
            log.warning("client.abuse", [.host: host])
            link?.end(.failed(TLSFailure("the server sends frames without end")))
            return
        }
        guard session.receive(bytes) else {
            link?.end(.failed(TLSFailure("the server does not speak HTTP/2")))
            return
        }
        handleEvents()
    }

    func linkWants(_ output: inout [UInt8], enough: Int) {
        guard let session else { return }
        guard session.send(into: &output, enough: enough) else {
            output.removeAll()
            link?.end(.failed(TLSFailure("HTTP/2 failed")))
            return
        }
        handleEvents()
    }

    func linkIsDrained() -> Bool {
        if state == .goingAway, streams.isEmpty { return true }
        return session?.isFinished ?? false
    }

    func linkIsBlocked() {}

    func linkEnded(_ end: LinkEnd) {
        let reason: String
        switch end {
        case .finished: reason = goAwayReason ?? "closed"
        case .closed: reason = goAwayReason ?? "closed by the server"
        case .failed(let failure): reason = failure.description
        }
        var failure = ConnectionFailure.closed(reason)
        // With TLS 1.3 the server looks at our certificate when for us the handshake is over: its alert is read.
        if case .failed(let cause) = end, session == nil || cause.what == "read" { failure = .tls(reason) }
        let opening = opening
        self.opening = nil
        if state == .connecting {
            // Another address may be tried.
            session = nil
            link = nil
        } else {
            tearDown(reason)
        }
        opening?(failure)
    }

    private func handleEvents() {
        let scratch = buffers.session
        var index = 0
        while index < scratch.events.count, session != nil {
            handle(scratch.events[index], scratch)
            index += 1
        }
        scratch.clear()
        // An answer makes room for who waits.
        if waiting > 0 { submitWaiting() }
    }

    private func handle(_ event: SessionEvent, _ scratch: SessionScratch) {
        switch event {
        case .headers(let id, let block): headers(id, block)
        case .data(let id, let range): data(id, scratch.inbound[range])
        case .ended(let id): ended(id)
        case .closed(let id, let code): closed(id, code)
        case .settings:
            hasSettings = true
            opened()
        case .goAway(_, let code, let debug): wentAway(code, debug)
        case .pingAcknowledged(let payload): pings.removeValue(forKey: payload)?(.zero)
        case .sentData: budget.earn()
        case .settingsAcknowledged, .sentEnd, .sentReset: break
        }
    }

    private func opened() {
        guard let opening else { return }
        self.opening = nil
        if state == .connecting { state = .open }
        opening(nil)
    }

    private func wentAway(_ code: UInt32, _ debug: [UInt8]) {
        let text = String(decoding: debug, as: UTF8.self)
        goAwayReason = "GOAWAY \(code)" + (text.isEmpty ? "" : ": \(text)")
        guard opening == nil else {
            // Before SETTINGS: this connection will not carry anything.
            link?.end(.finished)
            return
        }
        // nghttp2 closes the streams above the last one as refused; those events come next.
        retire()
    }

    private func headers(_ id: Int32, _ block: HeaderBlock) {
        guard let pending = streams[id], !block.isInterim else { return }
        guard !block.isTooLarge else {
            abandon(pending, "the answer's header is too large")
            return
        }
        // A second block is trailers, which carry nothing for us.
        if pending.head == nil { pending.head = block }
    }

    private func data(_ id: Int32, _ bytes: ArraySlice<UInt8>) {
        guard let pending = streams[id], !pending.isCompleted else { return }
        guard pending.body.count + bytes.count <= options.responseBytes else {
            abandon(pending, "the answer is too large")
            return
        }
        pending.body.append(contentsOf: bytes)
    }

    private func abandon(_ pending: PendingRequest, _ reason: String) {
        if let stream = pending.stream { session?.submitReset(stream, NGHTTP2_CANCEL) }
        pending.complete(.failure(.ambiguous(reason)), on: loop)
        flushSoon()
    }

    private func ended(_ id: Int32) {
        guard let pending = streams[id], !pending.isCompleted, let head = pending.head, let status = head.status else {
            return
        }
        budget.earn()
        let response = Response(status: status, fields: head.fields, body: pending.body)
        // Answered before it has read us to the end: what is left need not be sent.
        if let source = pending.source, !source.isSent { session?.submitReset(id, NGHTTP2_CANCEL) }
        pending.complete(.success(response), on: loop)
    }

    private func closed(_ id: Int32, _ code: UInt32) {
        guard let pending = streams.removeValue(forKey: id) else { return }
        if code == NGHTTP2_REFUSED_STREAM.rawValue {
            pending.complete(.failure(.notSent(goAwayReason ?? "refused")), on: loop)
        } else {
            pending.complete(.failure(.ambiguous("the stream ended with code \(code)")), on: loop)
        }
        if state == .goingAway, streams.isEmpty { flushSoon() }
    }
}
