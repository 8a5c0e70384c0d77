import EventLoop
import Glibc
import TLS
import World

/// The connection setup of a client: name resolution, TCP, TLS, and the server's SETTINGS.
extension HTTP2Client {
    /// Resolves the name anew, tries its addresses one after the other, and returns when the server
    /// has sent its SETTINGS. Only then has the server accepted our certificate. A client connects
    /// once.
    public func connect() async throws(ConnectionFailure) {
        begin()
        let limit = loop.time.instant() + options.connectTimeout
        switch await Resolver.addresses(host: host, port: port) {
        case .success(let addresses): try await connect(to: addresses, until: limit)
        case .failure(let reason):
            close()
            throw .resolve(reason.reason)
        }
    }

    /// Connects to the first of these addresses that accepts, for a caller that has resolved the
    /// name itself.
    public func connect(to addresses: [SocketAddress]) async throws(ConnectionFailure) {
        begin()
        try await connect(to: addresses, until: loop.time.instant() + options.connectTimeout)
    }

    private func begin() {
        precondition(loop.isCurrent, "HTTP2Client: not on its loop")
        let isFirst = connection.connect()
        precondition(isFirst, "a client connects once")
    }

    private func connect(to addresses: [SocketAddress], until limit: Instant) async throws(ConnectionFailure) {
        var failure = ConnectionFailure.closed("closed")
        for (index, address) in addresses.enumerated() {
            let left = limit - loop.time.instant()
            guard state == .connecting else { break }
            guard left > .zero else {
                failure = .timedOut
                break
            }
            // An address that does not answer must leave time for the next ones.
            guard let refusal = await attempt(address, within: left / (addresses.count - index)) else {
                remoteAddress = address
                return
            }
            failure = refusal
        }
        close()
        throw failure
    }

    private func attempt(_ address: SocketAddress, within limit: Duration) async -> ConnectionFailure? {
        let start = loop.time.instant()
        let fd: Int32
        do throws(SystemFailure) { fd = try Socket.connect(address) } catch { return .connect(error.description) }
        Socket.setUserTimeout(fd, options.userTimeout)
        Socket.setKeepAlive(fd)
        if let failure = await established(fd, within: limit) {
            Glibc.close(fd)
            return failure
        }
        if let failure = introduce(fd) {
            Glibc.close(fd)
            return failure
        }
        var session: TLSSession?
        if let tls {
            let name = options.serverName ?? host
            do throws(TLSFailure) { session = try TLSSession(client: tls, fd: fd, host: name) } catch {
                Glibc.close(fd)
                return .tls(error.description)
            }
        }
        let link = Transport(loop: loop, fd: fd, client: session, buffers: buffers)
        return await open(link, within: limit - (loop.time.instant() - start))
    }

    /// Sends a PROXY header if the server expects one from this address. Returns nil on success.
    private func introduce(_ fd: Int32) -> ConnectionFailure? {
        guard let own = Socket.localAddress(fd)?.unmapped, options.proxies.contains(where: { $0.contains(own) })
        else { return nil }
        let header = ProxyHeader.ownConnection
        // The buffer of a new connection has room for these few bytes.
        let count = header.withUnsafeBytes { Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        return count == header.count ? nil : .connect("the PROXY header cannot be sent")
    }

    /// Waits until the socket is connected. Returns nil on success.
    private func established(_ fd: Int32, within limit: Duration) async -> ConnectionFailure? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<ConnectionFailure?, Never>) in
            let attempt = ConnectAttempt(loop: loop) { continuation.resume(returning: $0) }
            attempt.timer = loop.schedule(after: limit) { attempt.finish(.timedOut) }
            do throws(SystemFailure) {
                attempt.watch = try loop.watch(fd: fd, .write) { _ in
                    let code = Socket.connectionError(fd)
                    attempt.finish(code == 0 ? nil : .connect(String(cString: strerror(code))))
                }
            } catch {
                attempt.finish(.connect(error.description))
            }
        }
    }

    /// Waits until the server has sent its SETTINGS. Returns nil on success.
    private func open(_ link: Transport, within limit: Duration) async -> ConnectionFailure? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<ConnectionFailure?, Never>) in
            let attempt = ConnectAttempt(loop: loop) { continuation.resume(returning: $0) }
            guard connection.beginHandshake(link, attempt) else {
                link.end(.finished)
                attempt.finish(.closed("closed"))
                return
            }
            attempt.timer = loop.schedule(after: limit) {
                attempt.finish(.timedOut)
                link.end(.finished)
            }
            do throws(SystemFailure) { try link.start(owner: self) } catch {
                attempt.finish(.connect(error.description))
                link.end(.finished)
            }
        }
    }
}

/// A step of connecting. It ends exactly once: by success, by failure or by its timer.
final class ConnectAttempt {
    private let loop: EventLoop
    private var end: ((ConnectionFailure?) -> Void)?
    var timer: TimerID?
    var watch: DescriptorWatcher?

    init(loop: EventLoop, end: @escaping (ConnectionFailure?) -> Void) {
        self.loop = loop
        self.end = end
    }

    func finish(_ failure: ConnectionFailure?) {
        guard let end else { return }
        self.end = nil
        if let timer { loop.cancel(timer) }
        watch?.cancel()
        watch = nil
        end(failure)
    }
}
