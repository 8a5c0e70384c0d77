import Bytes
import CLinux
import Daemon
import EventLoop
import Glibc
import Storage

/// A client program of MariaDB, such as `mariadb-dump`. Its options come through a pipe, so the
/// password appears neither in the list of processes nor in a file. The first argument must be
/// `optionsArgument`.
struct MariaDBProgram {
    /// Reads the options from the pipe, and keeps those of other files out.
    static let optionsArgument = "--defaults-file=/dev/fd/3"

    let name: String
    let arguments: [String]
    /// The descriptor of its standard input; nil for an empty one.
    var content: Int32?
    let output: Spawning.Output

    /// Runs the program. Returns what it complains about; nil if it succeeds.
    ///
    /// - Parameter waiting: is called every second.
    func run(_ options: Secret, waiting: () -> Void) throws(Failure) -> String? {
        var (input, errors): ([Int32], [Int32]) = ([0, 0], [0, 0])
        guard pipe2(&input, O_CLOEXEC) == 0 else { throw failure(String(cString: strerror(errno))) }
        guard pipe2(&errors, O_CLOEXEC) == 0 else {
            for fd in input { close(fd) }
            throw failure(String(cString: strerror(errno)))
        }
        let started = Result { () throws(SystemFailure) in
            try Spawning(
                program: name, arguments: arguments, input: content, output: output, errors: errors[1],
                further: input[0], hasOwnGroup: false
            ).start()
        }
        close(input[0])
        close(errors[1])
        // The options are shorter than what a pipe holds, so this does not wait for the program.
        options.withBytes { _ = write(input[1], $0.baseAddress, $0.count) }
        close(input[1])
        defer { close(errors[0]) }
        guard case .success(let pid) = started else {
            throw Failure(
                .failed, "\(name) cannot be started",
                next: "Install MariaDB's client programs (mariadb-client), or run this where they are.")
        }
        let complaint = Self.text(of: errors[0], waiting: waiting)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard status != 0 else { return nil }
        return complaint.isEmpty ? "it ended with status \(status)" : complaint
    }

    private func failure(_ reason: String) -> Failure {
        Failure(.failed, "\(name): \(reason)", next: "Nothing was changed. Free some descriptors, and try again.")
    }

    /// Reads what the program complains about, until it ends.
    private static func text(of errors: Int32, waiting: () -> Void) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            var waited = pollfd(fd: errors, events: Int16(POLLIN), revents: 0)
            let ready = poll(&waited, 1, 1000)
            if ready == 0 { waiting() }
            let count = ready > 0 ? read(errors, &chunk, chunk.count) : Int(ready)
            if count > 0 { bytes += chunk[..<count] }
            // The status of the program tells whether it did its work.
            if ready != 0, count == 0 || count < 0 && errno != EINTR { break }
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        return lines.joined(separator: "; ")
    }
}

/// The options that connect a program to a server.
extension MariaDBProgram {
    /// Returns the options in the form of an option file.
    static func options(
        _ server: StorageURL.Server, _ host: StorageURL.Server.Host?
    ) throws(Failure) -> Secret {
        var lines = ["[client]", "user=\(quoted(server.user))"]
        if let socket = server.socket {
            lines += ["protocol=socket", "socket=\(quoted(socket))"]
        } else if let host {
            lines += ["protocol=tcp", "host=\(quoted(host.name))", "port=\(host.port)"]
        }
        if let authority = server.authority {
            lines += ["ssl-ca=\(quoted(authority))", "ssl-verify-server-cert"]
        }
        if let password = try password(server) { lines.append("password=\(quoted(password))") }
        return Secret(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    private static func password(_ server: StorageURL.Server) throws(Failure) -> String? {
        guard let path = server.passwordFile else { return server.password }
        do throws(Files.Problem) {
            let lines = String(decoding: try Files.read(path), as: UTF8.self).split(separator: "\n")
            return lines.first.map(String.init)
        } catch {
            throw Failure(.failed, error.text, next: "It is the password_file of the store.")
        }
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.flatMap { $0 == "\\" || $0 == "\"" ? ["\\", $0] : [$0] }
        return "\"\(String(escaped))\""
    }
}
