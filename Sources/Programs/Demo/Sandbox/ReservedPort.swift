import CLinux
import Daemon
import Glibc

/// A free port of 127.0.0.1, reserved for another process until that process listens on it.
///
/// The socket is bound but does not listen, with the same options as the relay's listeners.
/// Therefore the relay can bind the port too, the system assigns it to no other process, and no
/// connection arrives here. The relay's test for another listener finds none.
final class ReservedPort {
    let number: UInt16
    private let socket: Int32

    init() throws(Failure) {
        let fd = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var on: Int32 = 1
        for option in [SO_REUSEADDR, SO_REUSEPORT] {
            setsockopt(fd, SOL_SOCKET, option, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(fd, address, length) == 0 && getsockname(fd, address, &length) == 0
            }
        }
        guard fd >= 0, bound else {
            let reason = String(cString: strerror(errno))
            close(fd)
            throw Failure(
                .unavailable, "no port of 127.0.0.1 can be reserved: \(reason)",
                next: "Check the loopback interface.")
        }
        number = UInt16(bigEndian: address.sin_port)
        socket = fd
    }

    deinit { close(socket) }
}
