import CMicroHTTPD
import EventLoop
import Glibc

/// One connection: how long it may take, and what libmicrohttpd says of its next request before it says who asks.
final class PageConnection {
    let remote: String
    /// Of the request that comes next: path and query as they stood in its first line.
    var target = ""
    weak var exchange: PageExchange?
    private let fd: Int32
    private let loop: EventLoop
    private let timeout: Duration
    private var timer: TimerID?

    init(_ server: HTTP1Server) {
        (fd, remote) = server.arriving
        loop = server.loop
        timeout = server.limits.timeout
        startClock()
    }

    /// libmicrohttpd counts silence only, so that a byte now and then would keep a connection for ever.
    func startClock() {
        stopClock()
        timer = loop.schedule(after: timeout) { [weak self] in self?.timeIsOver() }
    }

    func stopClock() {
        if let timer { loop.cancel(timer) }
        timer = nil
    }

    private func timeIsOver() {
        timer = nil
        // Whoever waits for us is not slow.
        if exchange?.isWaiting == true { return startClock() }
        // libmicrohttpd notices, and closes.
        shutdown(fd, Int32(SHUT_RDWR))
    }
}
