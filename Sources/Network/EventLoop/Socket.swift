import CLinux
import Glibc

/// TCP sockets that do not block.
public enum Socket {
    /// `SO_REUSEPORT`: every loop has a listener of its own on the same port, and the kernel spreads the connections.
    static func listen(_ address: SocketAddress, backlog: Int32) throws(SystemFailure) -> Int32 {
        let fd = try open(address.family)
        set(fd, SOL_SOCKET, SO_REUSEADDR, 1)
        set(fd, SOL_SOCKET, SO_REUSEPORT, 1)
        let bound = address.withPointer { Glibc.bind(fd, $0, $1) }
        guard bound == 0 else { throw failure("bind", fd) }
        guard Glibc.listen(fd, backlog) == 0 else { throw failure("listen", fd) }
        return fd
    }

    /// Fails if somebody listens there. Listeners that share a port do not notice each other, not even those of another
    /// process: it would quietly get a part of our connections, or we of its.
    public static func requireFree(_ address: SocketAddress) throws(SystemFailure) {
        let fd = try open(address.family)
        set(fd, SOL_SOCKET, SO_REUSEADDR, 1)
        let bound = address.withPointer { Glibc.bind(fd, $0, $1) }
        guard bound == 0 else { throw failure("bind", fd) }
        close(fd)
    }

    /// Begins to connect. The socket is writable once it has, or has not: ask `connectionError`.
    public static func connect(_ address: SocketAddress) throws(SystemFailure) -> Int32 {
        let fd = try open(address.family)
        setNoDelay(fd)
        let result = address.withPointer { Glibc.connect(fd, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else { throw failure("connect", fd) }
        return fd
    }

    /// Zero if the connection stands.
    public static func connectionError(_ fd: Int32) -> Int32 {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    /// Small frames leave at once.
    public static func setNoDelay(_ fd: Int32) { set(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }

    /// The kernel gives a connection up whose bytes nobody has acknowledged for so long: how a half-open one is found.
    public static func setUserTimeout(_ fd: Int32, _ duration: Duration) {
        set(fd, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(clamping: duration.components.seconds * 1000))
    }

    /// A peer that has gone without a word is found even if nothing is written.
    public static func setKeepAlive(_ fd: Int32) { set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) }

    /// Closing will reset the connection: what the peer has not taken is not kept for it any longer.
    public static func setReset(_ fd: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    public static func localAddress(_ fd: Int32) -> SocketAddress? { SocketAddress.read { getsockname(fd, $0, $1) } }

    private static func open(_ family: Int32) throws(SystemFailure) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let fd = socket(family, kind, 0)
        guard fd >= 0 else { throw SystemFailure("socket") }
        return fd
    }

    private static func set(_ fd: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func failure(_ call: String, _ fd: Int32) -> SystemFailure {
        let failure = SystemFailure(call)
        close(fd)
        return failure
    }
}
