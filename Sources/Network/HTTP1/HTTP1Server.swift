import CMicroHTTPD
import EventLoop
import Glibc
import HTTP
import Log

/// Serves pages over HTTP/1.1 to callers on this machine, on one loop. Made and used on that loop only, and to be stopped
/// there.
///
/// libmicrohttpd reads and writes; its epoll descriptor is watched by the loop, and connections come from our listener.
public final class HTTP1Server {
    let loop: EventLoop
    let pages: any Pages
    let limits: PageLimits
    let log: Log
    let names: LocalNames
    /// Where it listens; the port is the real one.
    public let address: SocketAddress
    public var port: UInt16 { address.port }

    private var daemon: OpaquePointer?
    private var listener: Listener?
    private var watch: DescriptorWatcher?
    private var timer: TimerID?
    private var isRunning = false
    private var mustRunAgain = false
    /// Those whose answer is being made elsewhere. libmicrohttpd must not be stopped before they are told something.
    private var waiting: [ObjectIdentifier: PageExchange] = [:]
    /// Set while a connection is handed over, which libmicrohttpd then tells us of.
    var arriving: (fd: Int32, remote: String) = (-1, "")

    /// The port is bound here. An address that is not this machine's own is refused: pages know no callers.
    public init(
        loop: EventLoop, address: SocketAddress, pages: any Pages, limits: PageLimits = PageLimits(), log: Log
    ) throws(SystemFailure) {
        guard address.isLoopback else { throw SystemFailure("pages are for this machine alone", EACCES) }
        // Listeners that share a port would not notice each other.
        if address.port != 0 { try Socket.requireFree(address) }
        self.loop = loop
        self.pages = pages
        self.limits = limits
        self.log = log
        let listener = try Listener(loop: loop, address: address)
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

    /// Ends everything now: whoever waits for an answer is told that there will be none.
    public func stop() {
        listener?.close()
        listener = nil
        // From within itself (by a handler) it stops afterwards.
        guard !isRunning else {
            loop.schedule(after: .zero) { self.stop() }
            return
        }
        guard let daemon else { return }
        for exchange in waiting.values { exchange.answered(.unavailable) }
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
        // It closes what it does not take.
        _ = remote.withPointer { MHD_add_connection(daemon, fd, $0, $1) }
        run()
    }

    /// Does what there is to do. Called from within itself (by an answer that is there at once) it does so afterwards.
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
        // What it has read already it is not told of again.
        var milliseconds: UInt64 = 0
        guard MHD_get_timeout(daemon, &milliseconds) == .YES else { return }
        timer = loop.schedule(after: .milliseconds(Int64(clamping: milliseconds))) { [weak self] in
            self?.timer = nil
            self?.run()
        }
    }

    func waits(_ exchange: PageExchange) { waiting[ObjectIdentifier(exchange)] = exchange }

    func goesOn(_ exchange: PageExchange) {
        waiting[ObjectIdentifier(exchange)] = nil
        run()
    }
}

extension Response {
    static let unavailable = plain(503, "There is no answer at the moment.\n")

    package static func plain(_ status: Int, _ text: String, _ fields: [Fields.Field] = []) -> Response {
        let type = Fields.Field("content-type", "text/plain; charset=utf-8")
        return Response(status: status, fields: Fields([type] + fields), body: Array(text.utf8))
    }
}
