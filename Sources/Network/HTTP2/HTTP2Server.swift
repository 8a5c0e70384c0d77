import EventLoop
import Glibc
import HTTP
import Log
import TLS
import World

/// A server of HTTP/2 on one loop, with its own listener. It speaks HTTP/1.1, too, if its TLS context
/// allows it. Created and used on that loop only.
public final class HTTP2Server {
    let loop: EventLoop
    let handler: any Handler
    let keeper: (any ServerController)?
    let limits: ServerLimits
    let proxies: Proxies
    let origin: WebAddress?
    private let admission: AdmissionControl?
    let record: HandshakeRecord?
    let log: Log
    let buffers = SharedBuffers()
    let holdEnds: HeldRequestCompleter
    private var tls: TLSServerContext?
    private var listener: Listener?
    private var connections: [ObjectIdentifier: ServerConnection] = [:]
    private(set) var certified = CertifiedConnections()
    private var accepted = 0
    private var httpDate = HTTPDate()
    private var date: (text: [UInt8], readAt: Instant)?
    private var drained: (() -> Void)?
    /// The number of requests in work, including requests of clients that have disconnected.
    private var running = 0
    private var drainLimit: TimerID?
    private var exhaustion = LogThrottle()
    private let handshakes: HandshakeScheduler
    private var sweep: TimerID?
    private var memory = MemoryTrimmer()
    private var abuse = LogThrottle()

    /// Takes over a socket.
    /// - Parameter tls: nil only in tests; then the client must begin with HTTP/2 without TLS.
    /// - Parameter origin: the address that requests over HTTP/1.1 must name in `Host`; nil accepts any.
    /// - Parameter keeper: controls every connection, if it is given.
    /// - Parameter proxies: the balancers; their connections begin with a PROXY header.
    /// - Parameter admission: counts the connections of all servers that share it; if it is nil,
    ///   `limits.connections` holds for this server alone.
    /// - Parameter record: counts the handshakes, and logs the certificates that were not accepted.
    public init(
        loop: EventLoop, socket: ListeningSocket, tls: TLSServerContext?, handler: any Handler,
        origin: WebAddress? = nil, keeper: (any ServerController)? = nil, limits: ServerLimits = ServerLimits(),
        proxies: Proxies = Proxies(), admission: AdmissionControl? = nil, record: HandshakeRecord? = nil, log: Log
    ) {
        self.admission = admission
        self.origin = origin
        self.record = record
        self.loop = loop
        holdEnds = HeldRequestCompleter(loop: loop)
        handshakes = HandshakeScheduler(loop: loop)
        self.tls = tls
        self.handler = handler
        self.keeper = keeper
        self.limits = limits
        self.proxies = proxies
        self.log = log
        listener = Listener(loop: loop, socket: socket)
        address = socket.address
    }

    /// Binds the port. The other parameters are those of `init(loop:socket:…)`.
    public convenience init(
        loop: EventLoop, address: SocketAddress, tls: TLSServerContext?, handler: any Handler,
        origin: WebAddress? = nil, keeper: (any ServerController)? = nil, limits: ServerLimits = ServerLimits(),
        proxies: Proxies = Proxies(), admission: AdmissionControl? = nil, record: HandshakeRecord? = nil, log: Log
    ) throws(SystemFailure) {
        self.init(
            loop: loop, socket: try ListeningSocket(address), tls: tls, handler: handler, origin: origin,
            keeper: keeper,
            limits: limits, proxies: proxies, admission: admission, record: record, log: log)
    }

    /// The address that it listens on, with the real port.
    public let address: SocketAddress
    public var port: UInt16 { address.port }

    public var connectionCount: Int { connections.count }

    /// The number of connections that have a TLS session.
    var sessionCount: Int { connections.values.count { $0.link.hasSession } }

    public func start() throws(SystemFailure) {
        try listener?.start(
            accepted: { [weak self] fd, remote in if let self { accept(fd, remote) } else { close(fd) } },
            exhausted: { [weak self] failure in self?.noteExhaustion(failure) })
    }

    /// Uses `tls` for new connections; existing ones keep the context that they were made with. Its
    /// sessions end, so that a connection that has not begun its handshake resumes none.
    public func replace(tls: TLSServerContext) {
        if tls !== self.tls { self.tls?.endSessions() }
        self.tls = tls
    }

    /// Stops accepting connections, sends GOAWAY to the clients and lets their streams end. Calls
    /// `completion` when all connections are closed and no work runs any more, or after
    /// `limits.drain`. Work for clients that have disconnected counts, too.
    public func drain(completion: @escaping () -> Void) {
        listener?.close()
        listener = nil
        drained = completion
        guard !finishDrainIfOver() else { return }
        drainLimit = loop.schedule(after: limits.drain) { [weak self] in
            guard let self else { return }
            drainLimit = nil
            for connection in connections.values { connection.abort() }
            finishDrain()
        }
        for connection in connections.values { connection.beginDrainForStop() }
    }

    /// Ends all connections at once.
    public func stop() {
        listener?.close()
        listener = nil
        handshakes.close()
        for connection in connections.values { connection.abort() }
    }

    @discardableResult private func finishDrainIfOver() -> Bool {
        guard connections.isEmpty, running == 0, drained != nil else { return false }
        finishDrain()
        return true
    }

    func workBegan() { running += 1 }

    func workEnded() {
        running -= 1
        finishDrainIfOver()
    }

    private func finishDrain() {
        if let drainLimit { loop.cancel(drainLimit) }
        drainLimit = nil
        handshakes.close()
        let completion = drained
        drained = nil
        completion?()
    }

    private func accept(_ fd: Int32, _ remote: SocketAddress) {
        let remote = remote.unmapped
        let proxy = proxies.contain(remote) ? remote : nil
        let ticket = admission?.admit(proxy == nil ? remote : nil, on: loop)
        guard admission == nil ? connections.count < limits.connections : ticket != nil else {
            Socket.setReset(fd)
            close(fd)
            return
        }
        var tls = tls
        var isIgnored = false
        accepted += 1
        switch keeper?.admit(accepted) {
        case nil, .serve: break
        case .serveWith(let another): tls = another
        case .ignore: isIgnored = true
        case .cut:
            ticket?.release()
            Socket.setReset(fd)
            close(fd)
            return
        }
        let connection = ServerConnection(
            server: self, fd: fd, number: accepted, tls: tls, remote: remote.host, ticket: ticket)
        connections[ObjectIdentifier(connection)] = connection
        memory.grown(to: connections.count)
        if isIgnored { connection.ignore() } else { connection.start(proxy: proxy) }
        if ticket != nil { scheduleSweep() }
    }

    /// Ends overdue connections once a second.
    private func scheduleSweep() {
        guard sweep == nil, let admission else { return }
        sweep = loop.schedule(after: .seconds(1)) { [weak self] in
            guard let self else { return }
            sweep = nil
            admission.sweep()
            if !connections.isEmpty { scheduleSweep() }
        }
    }

    func queueHandshake(_ connection: ServerConnection) { handshakes.add(connection, open: connections.count) }

    /// Indexes the connection by its client certificate, if the handshake has shown one.
    func identified(_ connection: ServerConnection) { certified.add(connection) }

    func ended(_ connection: ServerConnection) {
        certified.remove(connection)
        connections[ObjectIdentifier(connection)] = nil
        connection.ticket?.release()
        if memory.shrunk(to: connections.count) {
            loop.schedule(after: .seconds(1)) { MemoryTrimmer.run() }
        }
        finishDrainIfOver()
    }

    /// The `date` field for this turn. The clock is read once a turn, however many answers it
    /// makes.
    func dateOfTurn() -> [UInt8] {
        let now = loop.now
        if let date, date.readAt == now { return date.text }
        let text = httpDate.text(at: loop.time.now())
        date = (text, now)
        return text
    }

    /// Logs abuse at most once every ten seconds, with the number of connections that ended for it
    /// since the last line.
    func noteAbuse(by remote: String) {
        guard let count = abuse.record(at: loop.time.instant()) else { return }
        log.notice("connection.abuse", [.remote: remote, .count: count])
    }

    private func noteExhaustion(_ failure: SystemFailure) {
        guard let count = exhaustion.record(at: loop.time.instant()) else { return }
        log.error("connection.exhausted", [.error: failure.description, .count: count])
    }
}
