import CLinux
import EventLoop
import Glibc
import Synchronization

/// A `mariadbd` process with its own directory, controlled by its own pid. Process and directory
/// are removed when the test process ends in any way.
final class MariaDBProcess: Sendable {
    typealias Failed = MariaDBServer.Failed

    let directory: String
    private let readiness: Readiness
    private let process = Mutex<pid_t>(0)

    init() throws {
        directory = try TemporaryDirectory.make("mariadb")
        try Self.leaveToJanitor(directory)
        readiness = try Readiness(path: "\(directory)/ready")
    }

    var socket: String { "\(directory)/socket" }

    /// Creates the system tables, and returns when they exist.
    func install(_ options: [String]) throws {
        let install = try Self.spawn(
            ["mariadb-install-db", "--no-defaults", "--datadir=\(directory)/data", "--skip-test-db"]
                + ["--auth-root-authentication-method=normal", "--tmpdir=\(directory)"] + options,
            output: "\(directory)/install.log")
        guard Self.wait(install) == 0 else {
            throw Failed(description: "mariadb-install-db failed: \(Self.end(of: "\(directory)/install.log"))")
        }
    }

    /// Returns the command line of the server, without its program.
    func arguments(port: UInt16, _ options: [String]) -> [String] {
        [
            "--no-defaults", "--datadir=\(directory)/data", "--socket=\(socket)", "--port=\(port)",
            "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
            // A starting server removes old files from its temporary directory, so each server has
            // its own.
            "--innodb-flush-log-at-trx-commit=1", "--tmpdir=\(directory)",
            // Connections that tests share keep the statements of all these tests.
            "--max-prepared-stmt-count=1000000",
        ] + options
    }

    func start(_ arguments: [String]) throws {
        let started = try Self.spawn(
            ["mariadbd"] + arguments, output: "\(directory)/error.log",
            environment: "NOTIFY_SOCKET=\(directory)/ready")
        process.withLock { $0 = started }
        try Self.write("\(started)", to: "\(directory)/pid")
    }

    /// Returns when the server reports that it is ready.
    func awaitReady() throws {
        guard readiness.wait(for: process.withLock { $0 }) else {
            throw Failed(description: "mariadbd did not start: \(Self.end(of: "\(directory)/error.log"))")
        }
    }

    /// Runs a program to its end with other arguments, and returns its output.
    func ask(_ arguments: [String]) throws -> String {
        let path = "\(directory)/answer.log"
        unlink(path)
        _ = Self.wait(try Self.spawn(arguments, output: path))
        return Self.end(of: path)
    }

    /// Runs SQL as the administrator, and returns the rows as text; nil if it fails.
    func sql(_ text: String) throws -> String? {
        let path = "\(directory)/client.log"
        unlink(path)
        let client = try Self.spawn(
            ["mariadb", "--no-defaults", "--user=root", "--socket=\(socket)", "--connect-timeout=5"]
                + ["--batch", "--skip-column-names", "--execute=\(text)"], output: path)
        guard Self.wait(client) == 0 else { return nil }
        return Self.end(of: path)
    }

    /// The end of the log.
    var log: String { Self.end(of: "\(directory)/error.log") }

    // MARK: Faults

    /// Returns true while the process runs, and false after `kill` or a crash.
    var runs: Bool {
        process.withLock { process in
            guard process > 0 else { return false }
            guard waitpid(process, nil, WNOHANG) == process else { return true }
            process = 0
            return false
        }
    }

    /// Kills the process with SIGKILL, and returns when it is dead.
    func kill() {
        process.withLock { process in
            guard process > 0 else { return }
            Glibc.kill(process, SIGKILL)
            _ = Self.wait(process)
            process = 0
        }
    }

    /// Stops all threads of the process with SIGSTOP, and returns when they are stopped.
    /// Connections stay open, and nothing answers.
    func pause() {
        process.withLock { process in
            guard process > 0 else { return }
            Glibc.kill(process, SIGSTOP)
            var stopped = siginfo_t()
            // WNOWAIT leaves the process in place, so it is still a child and can be paused again.
            while waitid(P_PID, id_t(process), &stopped, WSTOPPED | WEXITED | WNOWAIT) < 0, errno == EINTR {}
        }
    }

    func resume() {
        process.withLock { process in
            guard process > 0 else { return }
            _ = Glibc.kill(process, SIGCONT)
        }
    }

    // MARK: Processes

    /// Starts a shell that waits for the end of this process. It then kills the server and removes
    /// the directory.
    private static func leaveToJanitor(_ directory: String) throws {
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Failed(description: "pipe2: \(errno)") }
        let script =
            "read end; [ -f '\(directory)/pid' ] && kill -9 \"$(cat '\(directory)/pid')\"; rm -rf '\(directory)'"
        _ = try spawn(["sh", "-c", script], input: ends[0])
        close(ends[0])
        // The other end stays open while this process lives.
    }

    /// Starts a program in its own process group. An interrupt from the keyboard ends the tests,
    /// and the shell ends the server.
    private static func spawn(
        _ arguments: [String], input: Int32? = nil, output: String = "/dev/null",
        environment variable: String = "NOTIFY_SOCKET="
    ) throws -> pid_t {
        let output = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(output) }
        let path = getenv("PATH").map { (path: UnsafeMutablePointer<CChar>) in String(cString: path) }
        // Servers are in /usr/sbin, which is not in every PATH.
        let program = ["/usr/sbin", "/usr/bin", "/bin"].map { "\($0)/\(arguments[0])" }
            .first { (path: String) in access(path, X_OK) == 0 }
        do throws(SystemFailure) {
            return try Spawning(
                program: program ?? arguments[0], arguments: Array(arguments.dropFirst()), input: input,
                output: .descriptor(output), errors: output,
                environment: ["PATH=\(path ?? ""):/usr/sbin:/sbin:/usr/bin:/bin", variable]
            ).start()
        } catch {
            throw Failed(description: "\(arguments[0]): \(String(cString: strerror(error.code)))")
        }
    }

    private static func wait(_ child: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// Returns the end of a file in the directory.
    private static func end(of path: String) -> String {
        guard let file = fopen(path, "r") else { return path }
        defer { fclose(file) }
        // A shorter file is read from its beginning.
        if fseek(file, -4096, SEEK_END) != 0 { rewind(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    private static func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "w") else { throw Failed(description: "\(path): \(errno)") }
        fputs(text, file)
        fclose(file)
    }
}

/// The socket on which a server reports that it is ready, with a datagram of systemd's protocol.
private struct Readiness: Sendable {
    private let descriptor: Int32

    init(path: String) throws {
        descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // The wait checks regularly whether the server still lives, since a dead one sends nothing.
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard bound == 0 else { throw MariaDBServer.Failed(description: "\(path): \(errno)") }
    }

    /// Waits until the server is ready; false if it died or took a minute.
    func wait(for server: pid_t) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        for _ in 0..<60 {
            let count = recv(descriptor, &bytes, bytes.count, 0)
            let message = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            if message.split(separator: "\n").contains("READY=1") { return true }
            guard waitpid(server, nil, WNOHANG) == 0 else { break }
        }
        return false
    }
}
