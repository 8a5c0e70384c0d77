import CLinux
import EventLoop
import Glibc
import KeyService

/// A listening Unix socket for other accounts of the machine, in a directory that these accounts
/// cannot change.
///
/// The directory belongs to root or to the process's own account, and nobody else may write to it.
/// Otherwise somebody could put a socket of their own in its place, and read what callers send. The
/// socket has its final mode and group before anybody can connect.
///
/// Tests: `ControlSocketTests`, `ConnectSocketTests`.
public struct ProtectedSocket: Sendable {
    public let path: String
    public let fd: Int32
    private let device: dev_t
    private let file: ino_t

    /// Listens at a path.
    ///
    /// - Parameters:
    ///   - group: the group of the socket; nil for that of the process.
    ///   - name: the setting or option that has the path, for messages.
    public static func open(
        _ path: String, mode: mode_t, group: gid_t? = nil, name: String
    ) throws(Failure) -> ProtectedSocket {
        try requireDirectory(of: path, name: name)
        do throws(SystemFailure) {
            let fd = try UnixSocket.listen(path, mode: mode, group: group)
            var state = stat()
            lstat(path, &state)
            return ProtectedSocket(path: path, fd: fd, device: state.st_dev, file: state.st_ino)
        } catch {
            let next =
                switch error.code {
                case EADDRINUSE:
                    "Another process listens there, or it is no socket. Stop that one, or choose another path."
                case EPERM where group != nil: "This account must be a member of the group, or root."
                default: "Its directory must exist, and this account must be able to write to it."
                }
            throw Failure(
                error.code == EADDRINUSE ? .conflict : .failed, "\(name): cannot listen at \(path): \(error)",
                next: next)
        }
    }

    static func requireDirectory(of path: String, name: String) throws(Failure) {
        let directory = Files.directory(of: path)
        var state = stat()
        let problem: String? =
            if stat(directory, &state) != 0 {
                String(cString: strerror(errno))
            } else if state.st_mode & S_IFMT != S_IFDIR {
                "is not a directory"
            } else if state.st_uid != 0, state.st_uid != geteuid() {
                "belongs to another account than root and that of this program"
            } else if state.st_mode & 0o022 != 0 {
                "can be written to by others"
            } else {
                nil
            }
        guard let problem else { return }
        throw Failure(
            .failed, "\(name): the directory \(directory) \(problem)",
            next: "Use a directory of its own, such as /run/twoefay, with the mode 0755.")
    }

    /// Whether the socket is still this one, and nobody has put another one in its place.
    var isOwn: Bool {
        var state = stat()
        return lstat(path, &state) == 0 && state.st_dev == device && state.st_ino == file
    }

    /// Removes the socket, unless another process has put its own there. It does not end listening.
    public func remove() {
        if isOwn { unlink(path) }
    }
}

/// The groups of the machine.
public enum SystemGroup {
    /// Returns the number of a group, which may also be given as a number; nil if there is no such
    /// group.
    public static func number(of name: String) -> gid_t? {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 64 << 10)
        if getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, let found { return found.pointee.gr_gid }
        return gid_t(name)
    }
}
