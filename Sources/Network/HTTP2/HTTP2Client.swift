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
    /// Streams have ended, or the server allows another number of them.
    public var onCapacity: (() -> Void)?
    /// What the server said with its GOAWAY.
    public internal(set) var goAwayReason: String?
    /// The machine behind the name that it is connected to.
    public internal(set) var remoteAddress: SocketAddress?

    /// How often the server has said what it allows.
    public internal(set) var settingsReceived = 0

    var link: Transport?
    /// Waits for the server's SETTINGS.
    var opening: ((ConnectionFailure?) -> Void)?
    var isConnecting = false
    var session: Session?
    var scanner = FrameScanner(skipping: 0)
    var budget: AbuseBudget
    /// Those in `queue` wait for a stream; completed ones are passed over when their turn comes.
    private var queue: [PendingRequest] = []
    private var queueStart = 0
    var waiting = 0
    var streams: [Int32: PendingRequest] = [:]
    var hasSettings = false
    var pings: [UInt64: (Duration?) -> Void] = [:]
    private var lastPing: UInt64 = 0
    var flushAtTurnEnd = false
    /// Since `onCapacity` was called.
    var capacityChanged = false

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
    /// Requests that could be sent now without waiting.
    public var freeStreams: Int { state == .open ? max(0, peerMaxConcurrentStreams - streams.count) : 0 }

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

    /// A request that may be given up.
    public struct Sent {
        fileprivate let pending: PendingRequest
    }

    /// The same without a task. `completion` is called once, on the loop, perhaps before this returns. Until then the
    /// connection stands, whoever else has let go of it.
    @discardableResult
    public func send(
        _ request: ClientRequest, deadline: Duration,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> Sent {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        let pending = PendingRequest(request, body: request.body, completion: completion)
        let sent = Sent(pending: pending)
        guard state == .open || state == .connecting else {
            pending.complete(.failure(.notSent("the connection is \(state)")), on: loop)
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

    /// Nobody waits for the answer any more: the server is told, and `completion` is called. Nothing where it has been.
    public func giveUp(_ sent: Sent) {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        if !sent.pending.isCompleted { end(sent.pending, "given up") }
    }

    func submitWaiting() {
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

    /// For who has a queue and a clock of its own: takes the request if there is a stream for it now, and gives the
    /// stream's number. `completion` is called once, on the loop, never before this returns; who has a queue has the client
    /// too, until then.
    public func begin(
        _ request: FormedRequest, of form: RequestForm,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> Int32? {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        guard let session, freeStreams > 0 else { return nil }
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

    /// Gives up a request that was begun: the server is told, and its answer is not waited for. No completion follows.
    /// False if the server cannot have had all of the request.
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
            // The numbers of this connection are used up, or it is at its end.
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

    /// The time of a round trip; nil if none came back in `options.pingTimeout`, or the connection ended.
    public func ping() async -> Duration? {
        await withUnsafeContinuation { continuation in ping { continuation.resume(returning: $0) } }
    }

    /// The same without a task. `completion` is called once, on the loop, perhaps before this returns.
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

    func flushSoon() {
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

    func tearDown(_ reason: String) {
        let failed = streams
        streams = [:]
        session = nil
        link = nil
        hasSettings = false
        state = .closed
        failWaiting(reason)
        for pending in failed.values.sorted(by: { ($0.stream ?? 0) < ($1.stream ?? 0) }) {
            pending.complete(.failure(pending.failure(reason)), on: loop)
        }
        let asked = pings
        pings = [:]
        for answer in asked.values { answer(nil) }
    }
}
