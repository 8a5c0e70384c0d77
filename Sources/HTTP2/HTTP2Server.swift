import EventLoop
import Glibc
import HTTP
import Log
import TLS
import World

/// Serves HTTP/2 on one loop, with a listener of its own. Made and used on that loop only.
public final class HTTP2Server {
    let loop: EventLoop
    let handler: any Handler
    let keeper: (any ServerKeeper)?
    let limits: ServerLimits
    let proxies: Proxies
    let log: Log
    let buffers = SharedBuffers()
    private var tls: TLSServerContext?
    private var listener: Listener?
    private var connections: [ObjectIdentifier: ServerConnection] = [:]
    private var accepted = 0
    private var httpDate = HTTPDate()
    private var date: (text: [UInt8], readAt: Instant)?
    private var drained: (() -> Void)?
    private var drainLimit: TimerID?
    private var exhaustion = Burst()

    /// The port is bound here. Without `tls` (for tests only) the client must know that this is HTTP/2. A `keeper` has every
    /// connection in hand. Connections of `proxies` begin with whose they are.
    public init(
        loop: EventLoop, address: SocketAddress, tls: TLSServerContext?, handler: any Handler,
        keeper: (any ServerKeeper)? = nil, limits: ServerLimits = ServerLimits(), proxies: Proxies = Proxies(),
        log: Log
    ) throws(SystemFailure) {
        self.loop = loop
        self.tls = tls
        self.handler = handler
        self.keeper = keeper
        self.limits = limits
        self.proxies = proxies
        self.log = log
        let listener = try Listener(loop: loop, address: address)
        self.listener = listener
        self.address = listener.address
    }

    /// Where it listens; the port is the real one.
    public let address: SocketAddress
    public var port: UInt16 { address.port }

    public var connectionCount: Int { connections.count }

    public func start() throws(SystemFailure) {
        try listener?.start(
            accepted: { [unowned self] fd, remote in accept(fd, remote) },
            exhausted: { [unowned self] failure in noteExhaustion(failure) })
    }

    /// For the connections to come; those that stand keep what they were made with.
    public func replace(tls: TLSServerContext) { self.tls = tls }

    /// Takes no new connection, tells the clients, lets their streams end, and says when all are gone — after
    /// `limits.drain` at the latest.
    public func drain(completion: @escaping () -> Void) {
        listener?.close()
        listener = nil
        drained = completion
        guard !connections.isEmpty else {
            finishDrain()
            return
        }
        drainLimit = loop.schedule(after: limits.drain) { [weak self] in
            guard let self else { return }
            drainLimit = nil
            for connection in connections.values { connection.abort() }
        }
        for connection in connections.values { connection.drain() }
    }

    /// Ends everything now.
    public func stop() {
        listener?.close()
        listener = nil
        for connection in connections.values { connection.abort() }
    }

    private func finishDrain() {
        if let drainLimit { loop.cancel(drainLimit) }
        drainLimit = nil
        let completion = drained
        drained = nil
        completion?()
    }

    private func accept(_ fd: Int32, _ remote: SocketAddress) {
        guard connections.count < limits.connections else {
            close(fd)
            return
        }
        var (session, tls): (TLSSession?, TLSServerContext?) = (nil, tls)
        var isIgnored = false
        accepted += 1
        switch keeper?.admit(accepted) {
        case nil, .serve: break
        case .serveWith(let another): tls = another
        case .ignore: isIgnored = true
        case .cut:
            Socket.setReset(fd)
            close(fd)
            return
        }
        if let tls {
            do throws(TLSFailure) { session = try TLSSession(server: tls, fd: fd) } catch {
                log.warning("connection.refused", [.error: error.description])
                close(fd)
                return
            }
        }
        let remote = remote.unmapped
        let connection = ServerConnection(
            server: self, fd: fd, number: accepted, tls: session, remote: remote.host,
            isProxied: proxies.contain(remote))
        connections[ObjectIdentifier(connection)] = connection
        if isIgnored { connection.ignore() } else { connection.start() }
    }

    func ended(_ connection: ServerConnection) {
        connections[ObjectIdentifier(connection)] = nil
        if connections.isEmpty, drained != nil { finishDrain() }
    }

    /// The clock is read once a turn, however many answers it makes.
    func dateOfTurn() -> [UInt8] {
        let now = loop.now
        if let date, date.readAt == now { return date.text }
        let text = httpDate.text(at: loop.time.now())
        date = (text, now)
        return text
    }

    private func noteExhaustion(_ failure: SystemFailure) {
        guard let count = exhaustion.note(at: loop.time.instant()) else { return }
        log.error("connection.exhausted", [.error: failure.description, .count: count])
    }
}
