import CMicroHTTPD
import EventLoop
import Glibc
import HTTP
import Log

/// An HTTP/1.1 server for pages and other local callers, on one loop. It serves only callers on this
/// machine. It must be created, used and stopped on its loop.
///
/// libmicrohttpd reads and writes. The loop watches its epoll descriptor, and our listener accepts
/// the connections. Tests: `PageTests`, `LocalAccessTests`.
public final class HTTP1Server {
    let loop: EventLoop
    let pages: any Pages
    let limits: PageLimits
    let log: Log
    let names: LocalNames
    /// The address that it listens on, with the real port.
    public let address: SocketAddress
    public var port: UInt16 { address.port }

    private var daemon: OpaquePointer?
    private var listener: Listener?
    private var watch: DescriptorWatcher?
    private var timer: TimerID?
    private var isRunning = false
    private var mustRunAgain = false
    /// Exchanges that wait for their answer. Each must be answered before libmicrohttpd is stopped.
    private var waiting: [ObjectIdentifier: PageExchange] = [:]
    /// The connection that is being passed to libmicrohttpd. Its callback reads it.
    var arriving: (fd: Int32, remote: String) = (-1, "")

    /// Binds the port. Refuses an address that is not loopback, because pages do not authenticate
    /// callers.
    public convenience init(
        loop: EventLoop, address: SocketAddress, pages: any Pages, limits: PageLimits = PageLimits(), log: Log
    ) throws(SystemFailure) {
        try Self.requireLoopback(address)
        // Listeners that share a port do not notice each other.
        if address.port != 0 { try Socket.requireFree(address) }
        try self.init(loop: loop, socket: try ListeningSocket(address), pages: pages, limits: limits, log: log)
    }

    private static func requireLoopback(_ address: SocketAddress) throws(SystemFailure) {
        guard address.isLoopback || address.isUnix else {
            throw SystemFailure("listen on \(address), which is not a loopback address", EACCES)
        }
    }

    /// Takes over a socket, which must be of a loopback address, too, or a Unix socket.
    public init(
        loop: EventLoop, socket: ListeningSocket, pages: any Pages, limits: PageLimits = PageLimits(), log: Log
    ) throws(SystemFailure) {
        try Self.requireLoopback(socket.address)
        self.loop = loop
        self.pages = pages
        self.limits = limits
        self.log = log
        let listener = Listener(loop: loop, socket: socket)
        self.listener = listener
        self.address = listener.address
        names = LocalNames(listener.address)
    }

    public func start() throws(SystemFailure) {
        guard daemon == nil, let listener else { return }
        let context = Unmanaged.passUnretained(self).toOpaque()
        guard
            let daemon = cmicrohttpd_start(
                context, limits.connections, MicroHTTPDCallbacks.access, MicroHTTPDCallbacks.completed,
                MicroHTTPDCallbacks.connection,
                MicroHTTPDCallbacks.target)
        else { throw SystemFailure("MHD_start_daemon") }
        self.daemon = daemon
        watch = try loop.watch(fd: cmicrohttpd_descriptor(daemon), .read) { [weak self] _ in self?.run() }
        try listener.start(
            accepted: { [weak self] fd, remote in
                if let self { accept(fd, remote) } else { close(fd) }
            },
            exhausted: { [log] failure in log.warning("connection.exhausted", [.error: failure.description]) })
    }

    /// Ends everything now. Callers that wait for an answer get a 503.
    public func stop() {
        listener?.close()
        listener = nil
        // If a handler calls it from within `run`, it stops afterwards.
        guard !isRunning else {
            loop.schedule(after: .zero) { self.stop() }
            return
        }
        guard let daemon else { return }
        for exchange in waiting.values { exchange.answered(pages.answer(to: .unanswered)) }
        watch?.cancel()
        watch = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        self.daemon = nil
        MHD_stop_daemon(daemon)
    }

    private func accept(_ fd: Int32, _ remote: SocketAddress) {
        guard let daemon else {
            close(fd)
            return
        }
        arriving = (fd, remote.host)
        // libmicrohttpd closes the descriptor if it refuses the connection.
        _ = remote.withPointer { MHD_add_connection(daemon, fd, $0, $1) }
        run()
    }

    /// Runs libmicrohttpd. If it is called from within itself (by an immediate answer), it runs
    /// once more afterwards.
    func run() {
        guard let daemon, !isRunning else {
            mustRunAgain = true
            return
        }
        isRunning = true
        repeat {
            mustRunAgain = false
            MHD_run(daemon)
        } while mustRunAgain
        isRunning = false
        if let timer { loop.cancel(timer) }
        timer = nil
        // No event reports bytes that libmicrohttpd has read already.
        var milliseconds: UInt64 = 0
        guard MHD_get_timeout(daemon, &milliseconds) == .YES else { return }
        timer = loop.schedule(after: .milliseconds(Int64(clamping: milliseconds))) { [weak self] in
            self?.timer = nil
            self?.run()
        }
    }

    func suspended(_ exchange: PageExchange) { waiting[ObjectIdentifier(exchange)] = exchange }

    func resumed(_ exchange: PageExchange) {
        waiting[ObjectIdentifier(exchange)] = nil
        run()
    }
}

extension Response {
    package static func plain(_ status: Int, _ text: String, _ fields: [Fields.Field] = []) -> Response {
        let type = Fields.Field("content-type", "text/plain; charset=utf-8")
        return Response(status: status, fields: Fields([type] + fields), body: Array(text.utf8))
    }
}
