import CLinux
import Demo
import EventLoop
import Glibc
import Synchronization

/// A real mariadbd in a directory of its own, on a port and a socket of its own. It and the directory are gone when the
/// test process is, however that ends.
public final class MariaDBServer: Sendable {
    public struct Failed: Error, CustomStringConvertible {
        public let description: String
    }

    public var port: UInt16 { reserved.port }
    private let reserved: FreePort
    private let directory: String
    private let options: [String]
    private let readiness: Readiness
    private let process = Mutex<pid_t>(0)
    private let databases = Atomic<Int>(0)

    /// The one that tests share; nobody stops it.
    public static func shared() throws -> MariaDBServer { try common.get() }

    /// The one for tests that kill and stop it; they run one after the other.
    public static func victim() throws -> MariaDBServer { try other.get() }

    private static let common = Result { try MariaDBServer() }
    private static let other = Result { try MariaDBServer() }

    /// `options` gets the directory and gives what is added to the server's command line.
    public init(_ options: (String) throws -> [String] = { _ in [] }) throws {
        var template = Array("/tmp/twoefay-mariadb-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failed(description: "mkdtemp: \(errno)") }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        reserved = try FreePort()
        try Self.leaveToJanitor(directory)
        readiness = try Readiness(path: "\(directory)/ready")
        let install = try Self.spawn(
            ["mariadb-install-db", "--no-defaults", "--datadir=\(directory)/data", "--skip-test-db"]
                + ["--auth-root-authentication-method=normal", "--tmpdir=\(directory)"] + Self.asRoot,
            output: "\(directory)/install.log")
        guard Self.wait(install) == 0 else {
            throw Failed(description: "mariadb-install-db failed: \(Self.end(of: "\(directory)/install.log"))")
        }
        self.options = try options(directory)
        try start()
    }

    // MARK: Using it

    public func freshDatabase() throws -> String {
        let name = "test\(databases.wrappingAdd(1, ordering: .relaxed).newValue)"
        try sql("CREATE DATABASE \(name)")
        return name
    }

    /// For `StorageURL`; through another port if a proxy stands there.
    public func url(_ database: String, port: UInt16? = nil) -> String {
        "mariadb://root@127.0.0.1:\(port ?? self.port)/\(database)"
    }

    public var socket: String { "\(directory)/socket" }

    /// Runs SQL as the server's administrator.
    public func sql(_ text: String) throws {
        let client = try Self.spawn(
            ["mariadb", "--no-defaults", "--user=root", "--socket=\(socket)", "--execute=\(text)"],
            output: "\(directory)/client.log")
        guard Self.wait(client) == 0 else { throw Failed(description: "failed: \(text)") }
    }

    // MARK: Harming it

    /// kill -9, and it is dead when this returns.
    public func kill() {
        process.withLock { process in
            guard process > 0 else { return }
            Glibc.kill(process, SIGKILL)
            _ = Self.wait(process)
            process = 0
        }
    }

    /// The process stands still, all its threads, when this returns; its connections stay open and nothing answers.
    public func pause() {
        process.withLock { process in
            guard process > 0 else { return }
            Glibc.kill(process, SIGSTOP)
            var stopped = siginfo_t()
            // Only told of, not taken: it is a child still, and may be paused again.
            while waitid(P_PID, id_t(process), &stopped, WSTOPPED | WEXITED | WNOWAIT) < 0, errno == EINTR {}
        }
    }

    public func resume() { process.withLock { _ = Glibc.kill($0, SIGCONT) } }

    /// On the same files and the same port. Returns when it answers.
    public func start() throws {
        let started = try Self.spawn(
            [
                "mariadbd", "--no-defaults", "--datadir=\(directory)/data", "--socket=\(socket)", "--port=\(port)",
                "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
                // A server that starts removes what it takes for its own leftovers there.
                "--innodb-flush-log-at-trx-commit=1", "--tmpdir=\(directory)",
            ] + Self.asRoot + options, output: "\(directory)/error.log",
            environment: "NOTIFY_SOCKET=\(directory)/ready")
        process.withLock { $0 = started }
        try Self.write("\(started)", to: "\(directory)/pid")
        guard readiness.wait(for: started) else {
            throw Failed(description: "mariadbd did not start: \(Self.end(of: "\(directory)/error.log"))")
        }
    }

    // MARK: Processes

    private static let asRoot = getuid() == 0 ? ["--user=root"] : []

    /// A shell that waits until this process is gone, however it went, then ends the server and removes the directory.
    private static func leaveToJanitor(_ directory: String) throws {
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Failed(description: "pipe2: \(errno)") }
        let script =
            "read end; [ -f '\(directory)/pid' ] && kill -9 \"$(cat '\(directory)/pid')\"; rm -rf '\(directory)'"
        _ = try spawn(["sh", "-c", script], input: ends[0])
        close(ends[0])
        // The other end stays open as long as this process lives.
    }

    /// In a process group of its own: an interrupt at the keyboard ends the tests, and the janitor the rest.
    private static func spawn(
        _ arguments: [String], input: Int32? = nil, output: String = "/dev/null",
        environment variable: String = "NOTIFY_SOCKET="
    ) throws -> pid_t {
        let output = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(output) }
        let path = getenv("PATH").map { (path: UnsafeMutablePointer<CChar>) in String(cString: path) }
        // Servers live in /usr/sbin, which is not on everybody's path.
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

    /// The last of a log, which goes with the directory.
    private static func end(of path: String) -> String {
        guard let file = fopen(path, "r") else { return path }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count].suffix(1500), as: UTF8.self)
    }

    private static func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "w") else { throw Failed(description: "\(path): \(errno)") }
        fputs(text, file)
        fclose(file)
    }
}

/// Where a server says that it is ready, by systemd's protocol: a datagram.
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
        // Now and then a look at the server itself: one that died says nothing.
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard bound == 0 else { throw MariaDBServer.Failed(description: "\(path): \(errno)") }
    }

    /// False if it died or took a minute.
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
