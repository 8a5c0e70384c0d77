import EventLoop
import Glibc
import KeyService

/// The listening end of the control socket, made before the process is restricted.
///
/// Its directory belongs to root or to the relay's account, and nobody else may write to it.
/// Otherwise somebody could put a socket of their own in its place, and read what the help desk
/// sends. If groups have roles, every account of the machine may connect, because a file has one
/// group only; the relay refuses those without a role.
public struct ControlListener: Sendable {
    let path: String
    let fd: Int32
    private let device: dev_t
    private let file: ino_t

    /// Listens at the path of the setting `control.socket`; nil if it is not set.
    static func open(_ settings: Settings) throws(Failure) -> ControlListener? {
        guard let socket = settings.control.socket else { return nil }
        let path = settings.path(of: socket)
        let groups = try ControlGroups(settings.control)
        try requireDirectory(of: path)
        do throws(SystemFailure) {
            let fd = try UnixSocket.listen(path, mode: groups.socketMode)
            var state = stat()
            lstat(path, &state)
            return ControlListener(path: path, fd: fd, device: state.st_dev, file: state.st_ino)
        } catch {
            let isTaken = error.code == EADDRINUSE
            throw Failure(
                isTaken ? .conflict : .failed, "control.socket: cannot listen at \(path): \(error)",
                next: isTaken
                    ? "Another process listens there, or it is no socket. Stop that one, or choose another path."
                    : "Its directory must exist, and this account must be able to write to it.")
        }
    }

    static func requireDirectory(of path: String) throws(Failure) {
        let directory = Files.directory(of: path)
        var state = stat()
        let problem: String? =
            if stat(directory, &state) != 0 {
                String(cString: strerror(errno))
            } else if state.st_mode & S_IFMT != S_IFDIR {
                "is not a directory"
            } else if state.st_uid != 0, state.st_uid != geteuid() {
                "belongs to another account than root and the relay's"
            } else if state.st_mode & 0o022 != 0 {
                "can be written to by others"
            } else {
                nil
            }
        guard let problem else { return }
        throw Failure(
            .failed, "control.socket: the directory \(directory) \(problem)",
            next: "Use a directory of the relay's own, such as /run/twoefay, with the mode 0755.")
    }

    /// Gives the socket another mode: groups have got roles, or none has one any more. Connections that are
    /// open stay. A socket that somebody has removed is left: nobody can reach it before a restart.
    func use(_ mode: mode_t) throws(Failure) {
        // The system call filter allows two modes.
        guard isOwn, chmod(path, mode) != 0 else { return }
        throw Failure(
            .failed, "control.socket: the mode of \(path) cannot be changed: \(String(cString: strerror(errno)))",
            next: "Restart the relay, which then makes the socket again.")
    }

    /// Whether the socket is still this one, and nobody has put another one in its place.
    private var isOwn: Bool {
        var state = stat()
        return lstat(path, &state) == 0 && state.st_dev == device && state.st_ino == file
    }

    /// Stops listening, and removes the socket, unless another process has put its own there.
    func close() {
        Glibc.close(fd)
        if isOwn { unlink(path) }
    }
}
