import CLinux
import EventLoop
import Glibc

/// Stream sockets that are named by a path. They do not block.
enum UnixSocket {
    /// The kernel takes no longer path.
    static let longestPath = 107

    /// Listens at a path. A socket that a dead process has left there is replaced; a living one is not.
    static func listen(_ path: String, mode: mode_t) throws(SystemFailure) -> Int32 {
        if isSocket(path), let failure = failureToConnect(path), failure.code == ECONNREFUSED { unlink(path) }
        let fd = try open()
        guard withAddress(path, { bind(fd, $0, $1) }) == 0 else { throw closing(fd, "bind") }
        // Nobody can connect before `listen`, so nobody connects under other permissions.
        guard chmod(path, mode) == 0 else { throw closing(fd, "chmod") }
        guard Glibc.listen(fd, 64) == 0 else { throw closing(fd, "listen") }
        return fd
    }

    /// Connects at once, or not at all.
    static func connect(_ path: String) throws(SystemFailure) -> Int32 {
        let fd = try open()
        guard withAddress(path, { Glibc.connect(fd, $0, $1) }) == 0 else { throw closing(fd, "connect") }
        return fd
    }

    /// Returns why nobody can be reached there, or nil if somebody can.
    static func failureToConnect(_ path: String) -> SystemFailure? {
        do throws(SystemFailure) {
            close(try connect(path))
            return nil
        } catch {
            return error
        }
    }

    /// The user and the process at the other end, as the kernel noted them when the connection was made.
    static func peer(of fd: Int32) -> (user: uid_t, process: pid_t)? {
        var user = uid_t()
        var process = pid_t()
        return clinux_peer(fd, &user, &process) == 0 ? (user, process) : nil
    }

    private static func isSocket(_ path: String) -> Bool {
        var state = stat()
        return lstat(path, &state) == 0 && state.st_mode & S_IFMT == S_IFSOCK
    }

    private static func open() throws(SystemFailure) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let fd = socket(AF_UNIX, kind, 0)
        guard fd >= 0 else { throw SystemFailure("socket") }
        return fd
    }

    private static func closing(_ fd: Int32, _ call: String) -> SystemFailure {
        let failure = SystemFailure(call)
        close(fd)
        return failure
    }

    /// - Returns: -1 and `ENAMETOOLONG` for a path that the kernel would not take whole.
    private static func withAddress(_ path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        guard path.utf8.count <= longestPath else {
            errno = ENAMETOOLONG
            return -1
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
