import CLinux
import Glibc

/// Accepts connections on one loop. It is used on its loop only.
public final class Listener {
    /// The address it is bound to, with the port that the system chose for 0.
    public let address: SocketAddress
    private let loop: EventLoop
    private let fd: Int32
    private var watch: DescriptorWatcher?
    private var pause: TimerID?
    private var isClosed = false
    /// A spare descriptor. It is closed for a moment if no other one is left, so that a waiting
    /// client can be refused instead of ignored.
    private var reserve: Int32
    private var accepted: (Int32, SocketAddress) -> Void = { fd, _ in Glibc.close(fd) }
    private var exhausted: (SystemFailure) -> Void = { _ in }

    /// Takes over a socket. Clients that connect wait until `start`.
    public init(loop: EventLoop, socket: ListeningSocket) {
        self.loop = loop
        fd = socket.fd
        address = socket.address
        reserve = Self.openReserve()
    }

    /// Binds the port and listens.
    public convenience init(loop: EventLoop, address: SocketAddress) throws(SystemFailure) {
        self.init(loop: loop, socket: try ListeningSocket(address))
    }

    deinit {
        guard !isClosed else { return }
        loop.close(fd, of: watch)
        if reserve >= 0 { Glibc.close(reserve) }
    }

    /// Starts accepting.
    /// - Parameter accepted: called with each connection; it owns the descriptor.
    /// - Parameter exhausted: called after a connection was refused because the system has no
    ///   descriptor or memory for it.
    public func start(
        accepted: @escaping (Int32, SocketAddress) -> Void, exhausted: @escaping (SystemFailure) -> Void
    ) throws(SystemFailure) {
        guard watch == nil else { return }
        self.accepted = accepted
        self.exhausted = exhausted
        watch = try loop.watch(fd: fd, .read) { [weak self] _ in self?.accept() }
    }

    /// Stops accepting. The port is free when the listeners of all loops are closed.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        watch?.cancel()
        watch = nil
        if let pause { loop.cancel(pause) }
        Glibc.close(fd)
        if reserve >= 0 { Glibc.close(reserve) }
    }

    private func accept() {
        // A limited number, so that existing connections get their turns too.
        for _ in 0..<32 where watch != nil {
            var client: Int32 = -1
            let address = SocketAddress.read { pointer, length in
                client = clinux_accept(fd, pointer, length)
                return client >= 0 ? 0 : -1
            }
            if let address {
                Socket.setNoDelay(client)
                accepted(client, address)
                continue
            }
            let failure = SystemFailure("accept4")
            switch failure.code {
            case EAGAIN: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                refuseOne()
                exhausted(failure)
                return
            default: continue  // The client has gone, or the network failed.
            }
        }
    }

    private func refuseOne() {
        if reserve >= 0 {
            Glibc.close(reserve)
            let client = clinux_accept(fd, nil, nil)
            if client >= 0 { Glibc.close(client) }
        }
        reserve = Self.openReserve()
        guard reserve < 0, let watch else { return }
        // Another thread took the descriptor. Without a pause the loop would spin on the waiting
        // client.
        watch.change([])
        pause = loop.schedule(after: .milliseconds(100)) { [weak self] in
            guard let self else { return }
            pause = nil
            reserve = Self.openReserve()
            self.watch?.change(.read)
        }
    }

    private static func openReserve() -> Int32 { open("/dev/null", O_RDONLY | O_CLOEXEC) }
}
