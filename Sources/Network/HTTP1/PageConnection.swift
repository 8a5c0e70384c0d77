import CMicroHTTPD
import EventLoop
import Glibc

/// A connection: its time limit, and the target of its next request, which libmicrohttpd reports
/// before the request.
final class PageConnection {
    let remote: String
    /// The target of the next request: path and query as in its first line.
    var target = ""
    weak var exchange: PageExchange?
    private let fd: Int32
    private let loop: EventLoop
    private let timeout: Duration
    private var timer: TimerID?
    private var watch: DescriptorWatcher?

    init(_ server: HTTP1Server) {
        (fd, remote) = server.arriving
        loop = server.loop
        timeout = server.limits.timeout
        startClock()
    }

    /// Starts the time limit. libmicrohttpd measures only silence, so a byte now and then would
    /// keep a connection open for ever.
    func startClock() {
        stopClock()
        timer = loop.schedule(after: timeout) { [weak self] in self?.timeIsOver() }
    }

    func stopClock() {
        if let timer { loop.cancel(timer) }
        timer = nil
    }

    /// Calls `left` once the caller sends nothing more. libmicrohttpd does not look at a suspended
    /// connection. If the descriptor cannot be watched, the caller's request goes on as without it.
    func watchCaller(_ left: @escaping () -> Void) {
        watch = try? loop.watch(fd: fd, .hangUp) { [weak self] _ in
            self?.unwatchCaller()
            left()
        }
    }

    /// Ends that. It must be called before libmicrohttpd closes the descriptor.
    func unwatchCaller() {
        watch?.cancel()
        watch = nil
    }

    private func timeIsOver() {
        timer = nil
        // A client that waits for our answer is not slow.
        if exchange?.isWaiting == true { return startClock() }
        // libmicrohttpd notices the shutdown, and closes.
        shutdown(fd, Int32(SHUT_RDWR))
    }
}
