import CLinux
import Glibc

/// Non-blocking TCP sockets.
public enum Socket {
    /// Makes a listening socket with `SO_REUSEPORT`: every loop listens on the same port, and the
    /// kernel distributes the connections.
    static func listen(_ address: SocketAddress, backlog: Int32) throws(SystemFailure) -> Int32 {
        let fd = try open(address.family)
        set(fd, SOL_SOCKET, SO_REUSEADDR, 1)
        set(fd, SOL_SOCKET, SO_REUSEPORT, 1)
        let bound = address.withPointer { Glibc.bind(fd, $0, $1) }
        guard bound == 0 else { throw failure("bind", fd) }
        guard Glibc.listen(fd, backlog) == 0 else { throw failure("listen", fd) }
        return fd
    }

    /// Prepares a listening TCP socket that another program has opened, and returns its address.
    static func adoptListening(_ fd: Int32) throws(SystemFailure) -> SocketAddress {
        guard option(fd, SO_TYPE) == Int32(SOCK_STREAM.rawValue), option(fd, SO_ACCEPTCONN) == 1,
            [AF_INET, AF_INET6].contains(option(fd, SO_DOMAIN)), let address = localAddress(fd)
        else { throw SystemFailure("a listening TCP socket", ENOTSOCK) }
        let flags = clinux_add_flags(fd)
        guard flags == 0 else { throw SystemFailure("fcntl") }
        return address
    }

    static func duplicate(_ fd: Int32) throws(SystemFailure) -> Int32 {
        let copy = clinux_duplicate(fd)
        guard copy >= 0 else { throw SystemFailure("fcntl") }
        return copy
    }

    private static func option(_ fd: Int32, _ name: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }

    /// Throws if another program listens on the address. Listeners that share a port do not notice
    /// each other, not even those of another process. Without this check another process could get
    /// a part of our connections, or we of its connections.
    public static func requireFree(_ address: SocketAddress) throws(SystemFailure) {
        let fd = try open(address.family)
        set(fd, SOL_SOCKET, SO_REUSEADDR, 1)
        let bound = address.withPointer { Glibc.bind(fd, $0, $1) }
        guard bound == 0 else { throw failure("bind", fd) }
        close(fd)
    }

    /// Starts to connect. The socket becomes writable when that has succeeded or failed;
    /// `connectionError` tells which.
    public static func connect(_ address: SocketAddress) throws(SystemFailure) -> Int32 {
        let fd = try open(address.family)
        setNoDelay(fd)
        let result = address.withPointer { Glibc.connect(fd, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else { throw failure("connect", fd) }
        return fd
    }

    /// The error of the connection attempt; 0 if it succeeded.
    public static func connectionError(_ fd: Int32) -> Int32 {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    /// Sends small frames without delay.
    public static func setNoDelay(_ fd: Int32) { set(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }

    /// Makes the kernel close a connection if sent bytes are not acknowledged for `duration`. This
    /// detects half-open connections.
    public static func setUserTimeout(_ fd: Int32, _ duration: Duration) {
        set(fd, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(clamping: duration.components.seconds * 1000))
    }

    /// Detects a peer that has disappeared, even if nothing is written.
    public static func setKeepAlive(_ fd: Int32) { set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) }

    /// Makes `close` reset the connection. Bytes that the peer has not taken are dropped.
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
