import Glibc
import Synchronization

/// A real `mariadbd` with its own directory, port and socket. All of it is removed when the test
/// process ends in any way.
public final class MariaDBServer: Sendable {
    public struct Failed: Error, CustomStringConvertible {
        public let description: String
    }

    public var port: UInt16 { reserved.port }
    private let reserved: FreePort
    private let options: [String]
    private let process: MariaDBProcess
    private let databases = Mutex<(created: Int, used: Int)>((0, 0))

    /// The server that tests share; no test may stop it.
    public static func shared() throws -> MariaDBServer { try common.get() }

    /// The server for tests that kill and stop it; these run one after the other.
    public static func victim() throws -> MariaDBServer { try other.get() }

    private static let common = Result { try MariaDBServer() }
    private static let other = Result { try MariaDBServer() }

    /// Starts a server.
    ///
    /// - Parameter options: takes the directory, and returns further arguments for the server.
    public init(_ options: (String) throws -> [String] = { _ in [] }) throws {
        process = try MariaDBProcess()
        reserved = try FreePort()
        try process.install(Self.asRoot)
        self.options = Self.asRoot + (try options(process.directory))
        try start()
    }

    private static let asRoot = getuid() == 0 ? ["--user=root"] : []

    // MARK: Use

    /// Returns the name of a new, empty database. Databases are created sixteen at a time, because
    /// starting the client costs more than an empty database.
    public func freshDatabase() throws -> String {
        try databases.withLock { databases in
            if databases.used == databases.created {
                let next = databases.created + 1...databases.created + 16
                try sql(next.map { "CREATE DATABASE IF NOT EXISTS test\($0);" }.joined())
                databases.created = next.upperBound
            }
            databases.used += 1
            return "test\(databases.used)"
        }
    }

    /// Returns a storage URL.
    ///
    /// - Parameter port: the port of a proxy; nil for the server's own port.
    public func url(_ database: String, as account: String = "root", port: UInt16? = nil) -> String {
        "mariadb://\(account)@127.0.0.1:\(port ?? self.port)/\(database)"
    }

    /// Returns a storage URL for the administrator over the server's UNIX socket, which takes less
    /// processor time than TCP.
    public func urlOverSocket(_ database: String) -> String {
        "mariadb://root@localhost/\(database)?socket=\(socket)"
    }

    public var socket: String { process.socket }

    /// Runs SQL as the server's administrator.
    public func sql(_ text: String) throws {
        guard try process.sql(text) != nil else { throw Failed(description: "failed: \(text)") }
    }

    // MARK: Faults

    /// Kills the server with SIGKILL, and returns when it is dead.
    public func kill() { process.kill() }

    /// Stops all threads of the server, and returns when they are stopped. Connections stay open,
    /// and nothing answers.
    public func pause() { process.pause() }

    public func resume() { process.resume() }

    /// Starts the server again with the same files and port, and returns when it answers.
    public func start() throws {
        try process.start(process.arguments(port: port, options))
        try process.awaitReady()
    }
}
