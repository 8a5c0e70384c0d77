import Glibc

/// The listening end of the control socket, made before the process is restricted.
///
/// If groups have roles, every account of the machine may connect, because a file has one group
/// only; the relay refuses those without a role.
public struct ControlListener: Sendable {
    private let socket: ProtectedSocket
    var path: String { socket.path }
    var fd: Int32 { socket.fd }

    private static let name = "control.socket"

    /// Listens at the path of the setting `control.socket`; nil if it is not set.
    static func open(_ settings: Settings) throws(Failure) -> ControlListener? {
        guard let socket = settings.control.socket else { return nil }
        let groups = try ControlGroups(settings.control)
        return ControlListener(
            socket: try ProtectedSocket.open(settings.path(of: socket), mode: groups.socketMode, name: name))
    }

    static func requireDirectory(of path: String) throws(Failure) {
        try ProtectedSocket.requireDirectory(of: path, name: name)
    }

    /// Gives the socket another mode: groups have got roles, or none has one any more. Connections that are
    /// open stay. A socket that somebody has removed is left: nobody can reach it before a restart.
    func use(_ mode: mode_t) throws(Failure) {
        // The system call filter allows two modes.
        guard socket.isOwn, chmod(path, mode) != 0 else { return }
        throw Failure(
            .failed, "\(Self.name): the mode of \(path) cannot be changed: \(String(cString: strerror(errno)))",
            next: "Restart the relay, which then makes the socket again.")
    }

    /// Stops listening, and removes the socket, unless another process has put its own there.
    func close() {
        Glibc.close(fd)
        socket.remove()
    }
}
