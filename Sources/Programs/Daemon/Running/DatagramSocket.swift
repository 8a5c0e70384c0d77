import CLinux
import EventLoop
import Glibc

/// Datagram sockets to services of this machine: the service manager and syslog.
enum DatagramSocket {
    /// Connects to a path, or to a name in the abstract namespace if the address begins with `@`.
    ///
    /// - Parameter patience: the longest wait of a message for a service that does not read.
    static func connect(to address: String, patience: timeval) throws(SystemFailure) -> Int32 {
        var name = Array(address.utf8)
        guard name.first == UInt8(ascii: "/") || name.first == UInt8(ascii: "@") else {
            throw SystemFailure("neither a path nor an abstract name", EINVAL)
        }
        var destination = sockaddr_un()
        guard name.count < MemoryLayout.size(ofValue: destination.sun_path) else {
            throw SystemFailure("connect", ENAMETOOLONG)
        }
        // The length tells the kernel where an abstract name ends; a path ends with its zero.
        let start = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: destination.sun_path)
        let length = start + name.count + (name[0] == UInt8(ascii: "@") ? 0 : 1)
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        destination.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &destination.sun_path) { $0.copyBytes(from: name) }
        let fd = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw SystemFailure("socket") }
        var patience = patience
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let connected = withUnsafePointer(to: &destination) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(fd, $0, socklen_t(length))
            }
        }
        guard connected == 0 else {
            let failure = SystemFailure("connect")
            close(fd)
            throw failure
        }
        return fd
    }

    /// Sends one datagram, and waits for as long as the socket's patience says.
    static func send(_ bytes: [UInt8], to fd: Int32) throws(SystemFailure) {
        while Glibc.send(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL)) < 0 {
            guard errno == EINTR else { throw SystemFailure("send") }
        }
    }
}
