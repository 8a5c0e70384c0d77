import CNghttp2
import Crypto
import EventLoop
import HTTP
import Log
import TLS
import World

/// A client's connection to one server. It is used on its loop only; carry it in a `LoopBound`.
///
/// Purpose: many concurrent requests over one connection, each with a deadline. The caller must
/// know for each failed request whether the server may have processed it, because only `notSent`
/// allows a repetition. A request without a stream or with a refused stream counts as `notSent`. So
/// does a request with an unsent part of its body. Every other failure is `ambiguous`.
///
/// `ClientConnectionState` holds the state of the connection, and decides what each event leads to.
///
/// Invariants: each completion is called exactly once, unless `cancel` drops it. A request that
/// `send` takes is in `queue` until it gets a stream, and then in `streams` until the stream
/// closes. The client opens no stream above the limit of the server.
///
/// Risk: a completed request stays in `queue` until its turn, so `waiting` counts only those that
/// still wait. Tests: `ClientTests`, `RoundTripTests`.
public final class HTTP2Client {
    let loop: EventLoop
    let host: String
    let port: UInt16
    let tls: TLSClientContext?
    let options: ClientOptions
    let log: Log
    let buffers = SharedBuffers()

    var connection = ClientConnectionState<Transport, Session, ConnectAttempt>.idle {
        didSet { if state != oldValue.reported { onStateChange?(state) } }
    }
    public var state: ClientState { connection.reported }
    public var onStateChange: ((ClientState) -> Void)?
    /// Called when streams have ended, or when the server allows another number of them.
    public var onCapacity: (() -> Void)?
    /// The reason from the server's GOAWAY; nil until it came.
    public internal(set) var goAwayReason: String?
    /// The address that the client is connected to; nil before that.
    public internal(set) var remoteAddress: SocketAddress?

    /// The verified certificate of the server; nil before the handshake is complete and after the
    /// connection has ended.
    public var serverCertificate: Certificate? { connection.link?.serverCertificate }

    /// Number of SETTINGS frames received from the server.
    public internal(set) var settingsReceived = 0

    var session: Session? { connection.session }
    var scanner = FrameScanner(skipping: 0)
    var budget: AbuseBudget
    /// Requests that wait for a stream, from `queueStart` on. Completed ones are skipped at their
    /// turn.
    private var queue: [PendingRequest] = []
    private var queueStart = 0
    var waiting = 0
    var streams: [Int32: PendingRequest] = [:]
    var pings: [UInt64: (Duration?) -> Void] = [:]
    private var lastPing: UInt64 = 0
    var flushAtTurnEnd = false
    /// Whether streams ended or limits changed since `onCapacity` was called.
    var capacityChanged = false

    /// Makes a client; `connect` connects it.
    /// - Parameter tls: nil only in tests; then the server must expect HTTP/2 without TLS.
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

    /// The number of requests with a stream.
    public var activeStreams: Int { streams.count }
    /// The number of requests that wait for a stream.
    public var queuedRequests: Int { waiting }
    /// The number of requests that could be sent now without waiting.
    public var freeStreams: Int { state == .open ? max(0, peerMaxConcurrentStreams - streams.count) : 0 }

    /// The number of streams that the server allows now; 1 until its SETTINGS have come.
    public var peerMaxConcurrentStreams: Int {
        guard let session = connection.establishedSession else { return 1 }
        return min(options.maxStreams, Int(session.remoteSetting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)))
    }

    // MARK: Requests

    /// Sends a request. Never throws, and returns at `deadline` at the latest.
    public func send(_ request: ClientRequest, deadline: Duration) async -> Result<Response, RequestFailure> {
        await withUnsafeContinuation { continuation in
            send(request, deadline: deadline) { continuation.resume(returning: $0) }
        }
    }

    /// A handle to a request that was sent, by which it can be cancelled.
    public struct Sent {
        fileprivate let pending: PendingRequest
    }

    /// Sends a request without a task. `completion` is called once, on the loop, perhaps before
    /// this returns. The request keeps the client alive until then.
    @discardableResult
    public func send(
        _ request: ClientRequest, deadline: Duration,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> Sent {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        let pending = PendingRequest(request, body: request.body, completion: completion)
        let sent = Sent(pending: pending)
        guard state == .open || state == .connecting else {
            pending.complete(.failure(.notSent("the connection is \(state.text)")), on: loop)
            return sent
        }
        guard waiting < options.maxQueued else {
            pending.complete(.failure(.notSent("too many requests wait")), on: loop)
            return sent
        }
        pending.timer = loop.schedule(after: deadline) { [self, weak pending] in
            guard let pending else { return }
            pending.timer = nil
            end(pending, pending.stream == nil ? "no stream in time" : "no answer in time")
        }
        queue.append(pending)
        waiting += 1
        submitWaiting()
        return sent
    }

    /// Cancels a request: resets its stream, and calls `completion`. Does nothing if the request is
    /// already completed.
    public func giveUp(_ sent: Sent) {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        if !sent.pending.isCompleted { end(sent.pending, "given up") }
    }

    func submitWaiting() {
        guard case .open(_, let session) = connection else { return }
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

    /// Sends a request at once if a stream is free, for a caller with its own queue and timer.
    /// `completion` is called once, on the loop, never before this returns. The caller must keep
    /// the client alive until then.
    /// - Returns: the number of the stream; nil if no stream is free.
    public func begin(
        _ request: FormedRequest, of form: RequestForm,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> Int32? {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        guard case .open(_, let session) = connection, freeStreams > 0 else { return nil }
        let pending = PendingRequest(nil, body: request.body, completion: completion)
        let id = session.submitRequest(form, request, source: pending)
        guard id > 0 else {
            retire()
            return nil
        }
        pending.stream = id
        streams[id] = pending
        flushSoon()
        return id
    }

    /// Cancels a request that was begun: resets its stream, and calls no completion. Returns false
    /// if the server cannot have received all of the request.
    @discardableResult
    public func cancel(_ stream: Int32) -> Bool {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        guard let pending = streams[stream], !pending.isCompleted else { return true }
        pending.forget()
        session?.submitReset(stream, NGHTTP2_CANCEL)
        flushSoon()
        return pending.isSent
    }

    private func submit(_ pending: PendingRequest, _ session: Session) {
        guard let request = pending.request else { return }
        pending.request = nil
        let id = session.submitRequest(request, scheme: tls == nil ? "http" : "https", source: pending)
        guard id > 0 else {
            // The connection has no stream numbers left, or is about to end.
            pending.complete(.failure(.notSent("no stream")), on: loop)
            retire()
            return
        }
        pending.stream = id
        streams[id] = pending
    }

    private func end(_ pending: PendingRequest, _ reason: String) {
        if let stream = pending.stream {
            session?.submitReset(stream, NGHTTP2_CANCEL)
            flushSoon()
            pending.complete(.failure(pending.failure(reason)), on: loop)
        } else {
            waiting -= 1
            pending.complete(.failure(.notSent(reason)), on: loop)
        }
    }

    // MARK: The connection

    /// Measures a round trip; nil if no answer came within `options.pingTimeout`, or the connection
    /// ended.
    public func ping() async -> Duration? {
        await withUnsafeContinuation { continuation in ping { continuation.resume(returning: $0) } }
    }

    /// Measures a round trip without a task. `completion` is called once, on the loop, perhaps
    /// before this returns.
    public func ping(_ completion: @escaping (Duration?) -> Void) {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        guard let session else { return completion(nil) }
        lastPing += 1
        let payload = lastPing
        let start = loop.time.instant()
        let timer = loop.schedule(after: options.pingTimeout) { [weak self] in
            self?.pings.removeValue(forKey: payload)?(nil)
        }
        pings[payload] = { [loop] duration in
            loop.cancel(timer)
            completion(duration.map { _ in loop.time.instant() - start })
        }
        session.submitPing(payload)
        flushSoon()
    }

    /// Sends nothing new, and closes the connection when all sent requests are answered. A
    /// connection that is not open yet is closed at once.
    public func retire() {
        switch connection.retire() {
        case .none: break
        case .close: close()
        case .failWaiting: failWaiting()
        }
    }

    /// Closes the connection at once. Requests that were fully sent are ambiguous.
    public func close() {
        switch connection.close() {
        case .none: break
        case .tearDown: tearDown("closed")
        case .end(let link, let session, let attempt):
            session?.terminate(NGHTTP2_NO_ERROR)
            link.flush()
            link.end(.finished)
            attempt?.finish(.closed("closed"))
        }
    }

    func flushSoon() {
        guard !flushAtTurnEnd, connection.link != nil else { return }
        flushAtTurnEnd = true
        loop.atTurnEnd(self)
    }

    /// Fails the requests that have no stream, because the connection is going away.
    func failWaiting() {
        failWaiting("the connection is going away")
        flushSoon()
    }

    private func failWaiting(_ reason: String) {
        let left = queue[queueStart...]
        queue = []
        queueStart = 0
        waiting = 0
        for pending in left { pending.complete(.failure(.notSent(reason)), on: loop) }
    }

    /// Fails all requests and PINGs of a closed connection.
    func tearDown(_ reason: String) {
        let failed = streams
        streams = [:]
        failWaiting(reason)
        for pending in failed.values.sorted(by: { ($0.stream ?? 0) < ($1.stream ?? 0) }) {
            pending.complete(.failure(pending.failure(reason)), on: loop)
        }
        let asked = pings
        pings = [:]
        for answer in asked.values { answer(nil) }
    }
}
