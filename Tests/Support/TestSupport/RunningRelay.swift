import Bytes
import CLinux
import Crypto
import Daemon
import Glibc
import Log
import Storage
import Synchronization
import World

/// The built `twoefayd` as an operator runs it: with its own installation and process, reached over
/// the network. Process and files are removed when the test releases it or ends in any way.
public final class RunningRelay: Sendable {
    private struct State {
        var child: Child
        var reaper: ProcessReaper
        /// The logs of the earlier processes.
        var before = ""
    }

    public let directory: TemporaryDirectory
    public var port: UInt16 { reserved.port }
    private let reserved: FreePort
    public let origin: String
    public let storage: StorageURL
    private let state: Mutex<State>

    public var installation: String { directory("relay") }
    public var settings: String { directory("relay/twoefay.yaml") }

    /// Returns the path of a file of the installation.
    public func file(_ name: String) -> String { directory("relay/\(name)") }

    /// Creates an installation and starts the relay.
    ///
    /// - Parameters:
    ///   - programs: the directory of the programs; nil: those that were built.
    ///   - tables: the tables of an earlier package, in the place of the present ones.
    ///   - settings: changes the text of twoefay.yaml; see `String.set(_:to:)`.
    public static func start(
        _ kind: StoreKind = .file, by programs: String? = nil, tables: Int64? = nil,
        change settings: (inout String) throws -> Void = { _ in }
    ) async throws -> RunningRelay {
        for _ in 0..<5 {
            let directory = try TemporaryDirectory()
            let port = try FreePort()
            let storage = try await install(kind, in: directory, port: port.port, by: programs)
            if let tables { try await replaceTables(of: storage, by: tables) }
            let path = directory("relay/twoefay.yaml")
            var text = try TextFile.read(path)
            try settings(&text)
            try TextFile.write(text, to: path)
            do {
                let (child, reaper) = try await run(path, by: programs)
                return RunningRelay(directory, port, storage, child, reaper)
            } catch let problem as Child.Problem where problem.description.contains("cannot listen") {
                continue
            }
        }
        throw Child.Problem(description: "five ports were taken between looking and listening")
    }

    private init(
        _ directory: TemporaryDirectory, _ reserved: FreePort, _ storage: StorageURL, _ child: Child,
        _ reaper: ProcessReaper
    ) {
        self.storage = storage
        self.directory = directory
        self.reserved = reserved
        origin = "https://localhost:\(reserved.port)"
        state = Mutex(State(child: child, reaper: reaper))
    }

    deinit {
        state.withLock { state in
            // The process must be dead first, because it could still write into the directory.
            state.child.killAndWait()
            state.reaper.dismiss()
        }
    }

    private static func install(
        _ kind: StoreKind, in directory: TemporaryDirectory, port: UInt16, by programs: String?
    ) async throws -> StorageURL {
        var storage = StorageURL.sqlite(path: directory("relay/twoefay.db"))
        var arguments = ["init", directory("relay"), "--listen", "127.0.0.1:\(port)", "--host", "localhost"]
        // Some tests give the relay this origin, because a mail server wants a name with a domain.
        arguments += ["127.0.0.1", "::1", "login.example.org"]
        if kind == .mariadb {
            let text = try await blocking {
                let server = try MariaDBServer.shared()
                return server.url(try server.freshDatabase())
            }
            storage = try StorageURL(text)
            arguments += ["--storage", text]
        }
        let made = try await Child.run(try BuiltProgram.twoefay.path(in: programs), arguments)
        guard made.status == 0 else { throw Child.Problem(description: made.errors) }
        return storage
    }

    /// Gives a store, which nobody has used, the tables of an earlier package.
    public static func replaceTables(of storage: StorageURL, by version: Int64) async throws {
        try await blocking {
            switch storage {
            case .memory: throw Child.Problem(description: "a store in memory is migrated when it is opened")
            case .sqlite(let path): for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
            case .mariadb(let server):
                let name = server.database
                try MariaDBServer.shared().sql("DROP DATABASE \(name); CREATE DATABASE \(name)")
            }
            try FormerSchema.create(version, at: storage)
        }
    }

    private static func run(_ settings: String, by programs: String?) async throws -> (Child, ProcessReaper) {
        let child = try Child(try BuiltProgram.twoefayd.path(in: programs), ["--config", settings])
        let reaper = try ProcessReaper(of: child.pid)
        do {
            _ = try await child.line(.errors, with: "event=daemon.started")
        } catch {
            reaper.dismiss()
            throw error
        }
        return (child, reaper)
    }

    // MARK: Process

    public var pid: pid_t { state.withLock { $0.child.pid } }
    private var child: Child { state.withLock { $0.child } }

    /// The log, including that of earlier processes.
    public var log: String { state.withLock { $0.before + $0.child.written.errors } }

    /// Waits for a line of this process's log that contains `part`.
    ///
    /// - Parameter number: which of these lines, from 1.
    @discardableResult public func logged(_ part: String, number: Int = 1) async throws -> String {
        try await child.line(.errors, with: part, number: number)
    }

    /// Kills the relay with SIGKILL, and returns when it is dead.
    public func kill() async { _ = await end(SIGKILL) }

    /// Stops the relay with SIGTERM, and returns when it has ended.
    @discardableResult public func stop() async -> Child.Ended { await end(SIGTERM) }

    /// Sends a signal that does not end the relay, such as SIGHUP.
    public func signal(_ number: Int32) { child.signal(number) }

    /// Writes a new certificate and key of the server, by the same authority. SIGHUP makes the
    /// relay read them.
    @discardableResult public func renewCertificate() throws -> Certificate {
        let authority = try CertificateAuthority(
            certificatePEM: try TextFile.bytes(file("ca.pem")), keyPEM: Secret(try TextFile.bytes(file("ca.key"))))
        let issued = try authority.issueServer(names: ["localhost", "127.0.0.1"], days: 90, at: SystemTime().now())
        try TextFile.write(try issued.certificatePEM() + authority.certificatePEM(), to: file("server.pem"))
        try TextFile.write(try issued.keyPEM().reveal(), to: file("server.key"))
        return issued.certificate
    }

    private func end(_ signal: Int32) async -> Child.Ended {
        let child = child
        child.signal(signal)
        let ended = await child.ended()
        state.withLock { $0.reaper.dismiss() }
        return ended
    }

    /// Waits for the end of the process, whatever its cause.
    public func ended() async -> Child.Ended { await child.ended() }

    /// Starts the same installation on the same port again, after `kill` or `stop`.
    ///
    /// - Parameter programs: the directory of the program; nil: the one that was built.
    public func restart(by programs: String? = nil) async throws {
        let (child, reaper) = try await Self.run(settings, by: programs)
        state.withLock { state in
            state = State(child: child, reaper: reaper, before: state.before + state.child.written.errors)
        }
    }

    /// Changes the store by SQL, as an operator who then adopts the changed rows.
    public func execute(_ sql: String) throws {
        try Self.execute(sql, at: storage, settings: settings)
    }

    /// Changes the store of an installation without a relay, in the same way.
    public static func execute(_ sql: String, at storage: StorageURL, settings: String) throws {
        let file = try SettingsReader.read(Array(TextFile.read(settings).utf8), file: settings)
        try execute(sql, at: storage, SignedRows.everythingAdopted, file.loadMasterKey().rowAuthenticator())
    }

    /// Changes the store by SQL, as an attacker with write access and no key.
    public func forge(_ sql: String) throws { try Self.execute(sql, at: storage, [], nil) }

    private static func execute(
        _ sql: String, at storage: StorageURL, _ rows: [SignedRows], _ authenticator: RowAuthenticator?
    ) throws {
        var options = StoreOptions.patient
        options.rows = authenticator
        let store = try Store.open(storage, time: SystemTime(), log: Log(minimum: .error), options: options)
        defer { store.close() }
        _ = try store.runBlocking(Script("test", rows: rows, writes: [Statement(sql)()]))
    }

    /// Runs a query that returns one number.
    public func count(_ sql: String) throws -> Int64 { try Self.count(sql, at: storage) }

    /// Runs such a query in another store.
    public static func count(_ sql: String, at storage: StorageURL) throws -> Int64 {
        let store = try Store.open(storage, time: SystemTime(), log: Log(minimum: .error), options: .patient)
        defer { store.close() }
        return try store.runBlocking(Script("test", reads: [.value(of: sql)])).row(0).integer("value")
    }

    /// Changes the settings of an installation whose process does not run.
    public func change(_ settings: (inout String) throws -> Void) throws {
        var text = try TextFile.read(self.settings)
        try settings(&text)
        try TextFile.write(text, to: self.settings)
    }

    // MARK: Clients

    /// Runs `twoefay` for this installation; it must succeed.
    @discardableResult public func tool(_ arguments: String...) async throws -> String {
        try await tool(arguments)
    }

    @discardableResult public func tool(_ arguments: [String]) async throws -> String {
        let ended = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", settings] + arguments, in: directory.path)
        guard ended.status == 0 else { throw Child.Problem(description: ended.errors) }
        return ended.output
    }

    /// Adds a website with policies, as in `"--answers", "website"`, and returns its client.
    public func website(_ name: String, _ policies: String...) async throws -> CurlCaller {
        try await tool(["website", "add", name, "--out", directory.path] + policies)
        return caller(certificatePath: directory("\(name).pem"), keyPath: directory("\(name).key"))
    }

    /// Returns a client with this certificate and key, or an anonymous one.
    public func caller(certificatePath: String? = nil, keyPath: String? = nil) -> CurlCaller {
        CurlCaller(
            origin: origin, authorityPath: file("ca.pem"), port: port, certificatePath: certificatePath,
            keyPath: keyPath)
    }

    /// Returns a client of the listener for browsers at this port, with the certificate of another
    /// client.
    public func browser(at port: FreePort, with other: CurlCaller) -> CurlCaller {
        CurlCaller(
            origin: "https://localhost:\(port.port)", authorityPath: file("ca.pem"), port: port.port,
            certificatePath: other.certificatePath, keyPath: other.keyPath)
    }

    /// Returns a client with a certificate and key given as PEM texts.
    public func caller(_ name: String, certificate: String, key: String) throws -> CurlCaller {
        try TextFile.write(certificate, to: directory("\(name).pem"))
        try TextFile.write(key, to: directory("\(name).key"))
        return caller(certificatePath: directory("\(name).pem"), keyPath: directory("\(name).key"))
    }
}
