import CLinux
import EventLoop
import Glibc

/// Stream sockets in the file system. They do not block.
public enum UnixSocket {
    /// The length of the longest path that the kernel accepts, in bytes.
    static let longestPath = 107

    /// Listens at a path. A socket that an ended process left there is replaced; one that a running
    /// process listens on is not.
    ///
    /// - Parameter group: the group of the socket; nil for that of the process.
    public static func listen(_ path: String, mode: mode_t, group: gid_t? = nil) throws(SystemFailure) -> Int32 {
        if isSocket(path), let failure = failureToConnect(path), failure.code == ECONNREFUSED { unlink(path) }
        let fd = try open()
        guard withAddress(path, { bind(fd, $0, $1) }) == 0 else { throw closing(fd, "bind") }
        // No peer can connect before `listen`, so no peer connects under other permissions.
        if let group, lchown(path, uid_t.max, group) != 0 {
            let failure = closing(fd, "chown")
            unlink(path)
            throw failure
        }
        guard chmod(path, mode) == 0 else { throw closing(fd, "chmod") }
        guard Glibc.listen(fd, 64) == 0 else { throw closing(fd, "listen") }
        return fd
    }

    /// Connects at once, or throws.
    public static func connect(_ path: String) throws(SystemFailure) -> Int32 {
        let fd = try open()
        guard withAddress(path, { Glibc.connect(fd, $0, $1) }) == 0 else { throw closing(fd, "connect") }
        return fd
    }

    /// Connects, and waits while the queue of the listener is full: the kernel continues when the listener
    /// accepts a connection. The socket does not block afterwards.
    public static func connect(_ path: String, waitingSeconds seconds: Int) throws(SystemFailure) -> Int32 {
        let fd = try open()
        let flags = fcntl(fd, F_GETFL)
        var patience = timeval(tv_sec: seconds, tv_usec: 0)
        guard fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0,
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size)) == 0
        else { throw closing(fd, "setsockopt") }
        // A signal of a debugger or a job shell interrupts the wait.
        while withAddress(path, { Glibc.connect(fd, $0, $1) }) != 0 {
            guard errno == EINTR else { throw closing(fd, "connect") }
        }
        guard fcntl(fd, F_SETFL, flags) == 0 else { throw closing(fd, "fcntl") }
        return fd
    }

    /// Returns the reason why no process can be reached at the path; nil if one can.
    static func failureToConnect(_ path: String) -> SystemFailure? {
        do throws(SystemFailure) {
            close(try connect(path))
            return nil
        } catch {
            return error
        }
    }

    /// Returns the user and the process at the other end, as the kernel recorded them when the
    /// connection was made.
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

    /// Calls `bind` or `connect` with the address of a path.
    ///
    /// - Returns: -1 with `ENAMETOOLONG` for a path that is too long for the kernel.
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
