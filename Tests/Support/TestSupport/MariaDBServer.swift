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
    private let options: [String]
    private let process: MariaDBProcess
    private let databases = Atomic<Int>(0)

    /// The one that tests share; nobody stops it.
    public static func shared() throws -> MariaDBServer { try common.get() }

    /// The one for tests that kill and stop it; they run one after the other.
    public static func victim() throws -> MariaDBServer { try other.get() }

    private static let common = Result { try MariaDBServer() }
    private static let other = Result { try MariaDBServer() }

    /// `options` gets the directory and gives what is added to the server's command line.
    public init(_ options: (String) throws -> [String] = { _ in [] }) throws {
        process = try MariaDBProcess()
        reserved = try FreePort()
        try process.install(Self.asRoot)
        self.options = Self.asRoot + (try options(process.directory))
        try start()
    }

    private static let asRoot = getuid() == 0 ? ["--user=root"] : []

    // MARK: Using it

    public func freshDatabase() throws -> String {
        let name = "test\(databases.wrappingAdd(1, ordering: .relaxed).newValue)"
        try sql("CREATE DATABASE \(name)")
        return name
    }

    /// For `StorageURL`; through another port if a proxy stands there.
    public func url(_ database: String, as account: String = "root", port: UInt16? = nil) -> String {
        "mariadb://\(account)@127.0.0.1:\(port ?? self.port)/\(database)"
    }

    public var socket: String { process.socket }

    /// Runs SQL as the server's administrator.
    public func sql(_ text: String) throws {
        guard try process.sql(text) != nil else { throw Failed(description: "failed: \(text)") }
    }

    // MARK: Harming it

    /// kill -9, and it is dead when this returns.
    public func kill() { process.kill() }

    /// The process stands still, all its threads, when this returns; its connections stay open and nothing answers.
    public func pause() { process.pause() }

    public func resume() { process.resume() }

    /// On the same files and the same port. Returns when it answers.
    public func start() throws {
        try process.start(process.arguments(port: port, options))
        try process.awaitReady()
    }
}
