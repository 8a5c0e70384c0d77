import Glibc

/// A socket that listens. Clients that connect wait in the kernel's queue until a `Listener` takes
/// it over and accepts them. So a program can make sure of its address first, and do everything
/// else before it serves. Tested in `SecondRelayTests.swift`.
public struct ListeningSocket: Sendable {
    let fd: Int32
    /// The address it is bound to, with the port that the system chose for 0.
    public let address: SocketAddress

    /// Binds the port and listens.
    public init(_ address: SocketAddress) throws(SystemFailure) {
        fd = try Socket.listen(address, backlog: 4096)
        self.address = Socket.localAddress(fd) ?? address
    }

    /// Opens one socket for each loop, all on one port. The kernel distributes the connections.
    /// Throws if another program listens there.
    public static func open(_ address: SocketAddress, count: Int) throws(SystemFailure) -> [ListeningSocket] {
        try Socket.requireFree(address)
        let first = try ListeningSocket(address)
        var all = [first]
        do throws(SystemFailure) {
            while all.count < count { all.append(try ListeningSocket(first.address)) }
        } catch {
            for socket in all { socket.close() }
            throw error
        }
        return all
    }

    /// Takes over a listening TCP socket that another program has opened. It may share the socket
    /// with that program, so clients wait in the queue even while this program does not run.
    public init(adopting fd: Int32) throws(SystemFailure) {
        self.fd = fd
        address = try Socket.adoptListening(fd)
    }

    /// Takes over a Unix socket that listens already and does not block.
    public init(unix fd: Int32) throws(SystemFailure) {
        guard let address = Socket.localAddress(fd), address.isUnix else {
            throw SystemFailure("a listening Unix socket", ENOTSOCK)
        }
        self.fd = fd
        self.address = address
    }

    /// Returns this socket for each loop. All of them accept from one queue.
    public func shared(by count: Int) throws(SystemFailure) -> [ListeningSocket] {
        var all = [self]
        do throws(SystemFailure) {
            while all.count < count { all.append(ListeningSocket(fd: try Socket.duplicate(fd), address: address)) }
        } catch {
            for socket in all.dropFirst() { socket.close() }
            throw error
        }
        return all
    }

    private init(fd: Int32, address: SocketAddress) {
        self.fd = fd
        self.address = address
    }

    /// Closes a socket that no `Listener` has taken over. Waiting clients are refused.
    public func close() { Glibc.close(fd) }
}
