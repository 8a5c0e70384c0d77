import EventLoop
import Log
import Relay
import World

/// Limits of a store, and its keys for rows.
public struct StoreOptions: Sendable {
    /// The time after which a script is answered with `.unavailable`, even if it still runs. It is
    /// longer than `silence`, so that a lane can still turn to another server in time.
    public var deadline: Duration = .seconds(8)
    /// The time for which a MariaDB server may send nothing, in whole seconds. It is longer than
    /// the six seconds or so that a cluster needs to evict a failed node.
    public var silence: Duration = .seconds(7)
    /// The maximum number of scripts in one transaction.
    public var batch = 128
    /// The maximum number of scripts that may wait in a lane. A single tenant can fill half of it.
    public var waiting = 20_000
    /// Whether the store opens a separate connection for the change feed.
    public var watches = false
    /// Signs and checks rows. If nil, rows are neither signed nor checked. Nil is only for programs
    /// that never decide about an approval.
    public var rows: RowAuthenticator?
    /// Seals and opens personal values. If nil, they are written in the clear, and sealed ones
    /// cannot be read.
    public var personal: PersonalSealer?
    /// Whether audit rows are signed in a chain. False is only for benchmarks.
    public var chainsAudit = true
    /// Whether scripts may run in their short forms. False is only for tests of the guarded ones.
    public var usesShortForms = true
    /// Is called with the head of this program's audit rows when the store closes, if it wrote any.
    public var onClose: (@Sendable (AuditHead) -> Void)?
    /// The program, for the audit.
    public var author = AuditAuthor(program: "tool", host: "")

    public init() {}
}

/// The treatment of the tables when a store is opened.
public enum SchemaRequirement: Sendable {
    /// The tables must exist and be usable by this program.
    case require
    /// The store creates the tables or brings them up to date.
    case migrate
}

extension Store {
    /// Connects and checks the tables, on the calling thread. A database in memory is always
    /// migrated.
    public static func open(
        _ url: StorageURL, schema: SchemaRequirement = .require, time: any TimeSource, log: Log,
        options: StoreOptions = StoreOptions(), randomness: any Randomness = SystemRandomness(),
        worker: @escaping (String) throws -> any Worker = { try WorkerThread(name: $0) }
    ) throws(StoreFailure) -> Store {
        try open(
            url, schema: schema, migrations: Migration.all, time: time, log: log, options: options,
            randomness: randomness, worker: worker)
    }

    /// Opens a store whose tables exist. Each lane uses the session that `watch` returns for the
    /// original session.
    package static func open(
        _ url: StorageURL, time: any TimeSource, log: Log, options: StoreOptions,
        watch: (sending any Session) -> sending any Session
    ) throws(StoreFailure) -> Store {
        try open(
            url, schema: .require, migrations: Migration.all, time: time, log: log, options: options, watch: watch)
    }

    /// Opens a store over connected sessions to a database whose tables exist. The store closes the
    /// sessions when it closes. They may then pass the connection on, with its prepared statements.
    package static func open(
        over writes: sending any Session, reads: sending any Session, at url: StorageURL, time: any TimeSource,
        log: Log, options: StoreOptions
    ) throws(StoreFailure) -> Store {
        let factory = LaneFactory(options, time: time, randomness: SystemRandomness(), log: log) {
            try WorkerThread(name: $0)
        }
        do {
            let version = try Migration.all.check(writes)
            let writing = try factory.lane(.writing, over: writes)
            let reading: Lane
            do {
                reading = try factory.lane(.reading, over: reads)
            } catch {
                writing.close()
                throw error
            }
            return Store(
                writes: writing, reads: reading, watching: nil, logFile: nil, at: url,
                schemaVersion: version, keys: factory.keys, author: factory.author, onClose: options.onClose,
                limit: options.deadline, time: time)
        } catch {
            throw failure(error, at: url)
        }
    }

    static func open(
        _ url: StorageURL, schema: SchemaRequirement, migrations: [Migration], time: any TimeSource, log: Log,
        options: StoreOptions, randomness: any Randomness = SystemRandomness(),
        watch: (sending any Session) -> sending any Session = { $0 },
        worker: @escaping (String) throws -> any Worker = { try WorkerThread(name: $0) }
    ) throws(StoreFailure) -> Store {
        let factory = LaneFactory(options, time: time, randomness: randomness, log: log, worker: worker)
        do {
            let engine = url.engine(time: time, silence: options.silence)
            if schema == .migrate, url != .memory { try migrations.migrate(url, at: time.now()) }
            let logFile = try engine.writeAheadLog { try worker("store-log") }
            let session = try engine.session(.writing, logFile)
            if url == .memory { try migrations.migrate(session, url.dialect, now: time.now()) }
            let version = try migrations.check(session)
            if version != migrations.known {
                log.notice(
                    version < migrations.known ? "schema.older" : "schema.newer",
                    [.version: version, .limit: migrations.known])
            }
            let writes = try factory.lane(.writing, over: watch(session))
            var reads: Lane?
            var watching: Lane?
            if url != .memory {
                do {
                    reads = try factory.lane(.reading, over: watch(engine.session(.reading)))
                    if options.watches {
                        watching = try factory.lane(.watching, over: watch(engine.session(.watching)))
                    }
                } catch {
                    reads?.close()
                    writes.close()
                    throw error
                }
            }
            return Store(
                writes: writes, reads: reads, watching: watching, logFile: logFile, at: url,
                schemaVersion: version, keys: factory.keys, author: factory.author, onClose: options.onClose,
                limit: options.deadline, time: time)
        } catch {
            throw failure(error, at: url)
        }
    }

    /// Returns what `migrate` would do to the tables of a store. It changes nothing.
    public static func migrationPlan(_ url: StorageURL) throws(StoreFailure) -> MigrationPlan {
        do {
            return try Migration.all.plan(url)
        } catch {
            throw failure(error, at: url)
        }
    }

    /// Creates the tables of a store, or brings them up to date.
    ///
    /// - Parameter progress: called on this thread before each statement, and after each step.
    /// - Returns: what was done.
    public static func migrate(
        _ url: StorageURL, at now: Timestamp, progress: (MigrationEvent) -> Void
    ) throws(StoreFailure) -> MigrationPlan {
        do {
            return try Migration.all.migrate(url, at: now, progress: progress)
        } catch {
            throw failure(error, at: url)
        }
    }

    /// Returns the failure to open a store. It names the URL.
    private static func failure(_ error: any Error, at url: StorageURL) -> StoreFailure {
        switch error {
        case let mismatch as SchemaMismatch: .mismatched("\(url): \(mismatch.reason)", remedy: mismatch.remedy)
        case SessionFailure.statement(let message): .internal("\(url): \(message)")
        case let failure as SessionFailure: .unavailable("\(url): \(failure.message)")
        default: .unavailable("\(url): \(error)")
        }
    }
}

extension StorageURL {
    package enum Use {
        case migrating
        case writing
        case reading
        case watching
    }

    var dialect: Dialect {
        switch self {
        case .memory, .sqlite: .sqlite
        case .mariadb: .mariadb
        }
    }

    /// The names of the hosts in logs and metrics; empty if the store is a file.
    var places: [String] {
        switch self {
        case .memory, .sqlite: []
        case .mariadb(let server): server.places
        }
    }

    /// Makes the factory for the sessions of one store.
    func engine(time: any TimeSource = SystemTime(), silence: Duration = StoreOptions().silence) -> Engine {
        Engine(url: self, time: time, silence: silence)
    }

    /// Opens one session outside a store, for tests and tools.
    package func session(_ use: Use) throws(SessionFailure) -> sending any Session { try engine().session(use) }

    /// The factory for the sessions of one store. Its MariaDB sessions share `MariaDBHosts`, so
    /// that they use the same host.
    struct Engine {
        private let url: StorageURL
        private let hosts: MariaDBHosts
        private let silence: Duration

        init(url: StorageURL, time: any TimeSource, silence: Duration) {
            self.url = url
            self.silence = silence
            var hosts: [Server.Host] = []
            if case .mariadb(let server) = url, server.socket == nil { hosts = server.hosts }
            self.hosts = MariaDBHosts(hosts, time: time)
        }

        /// Makes the checkpointer of a SQLite file; nil for other stores.
        func writeAheadLog(_ worker: () throws -> any Worker) throws -> WALCheckpointer? {
            guard case .sqlite(let path) = url else { return nil }
            let session = try SQLiteSession(path: path, mode: .writing, timeout: .seconds(1))
            return WALCheckpointer(session, worker: try worker())
        }

        /// Opens a session that is connected and ready.
        ///
        /// - Parameter log: the checkpointer of the SQLite file, for the session that writes.
        func session(_ use: Use, _ log: WALCheckpointer? = nil) throws(SessionFailure) -> sending any Session {
            switch url {
            case .memory: return try SQLiteSession(path: nil, mode: .writing, timeout: .seconds(1))
            case .sqlite(let path):
                let mode: SQLiteSession.Mode =
                    switch use {
                    case .migrating: .creating
                    case .writing: .writing
                    case .reading, .watching: .readingOnly
                    }
                return try SQLiteSession(
                    path: path, mode: mode, timeout: use == .migrating ? .seconds(30) : .seconds(1), log: log)
            case .mariadb(let server):
                var timeouts = MariaDBConnection.Timeouts()
                // A migration of a large table may take hours.
                timeouts.silence = use == .migrating ? 24 * 3600 : UInt32(clamping: silence.components.seconds)
                let purpose: Purpose =
                    switch use {
                    case .migrating, .writing: .writing
                    case .reading: .reading
                    case .watching: .watching
                    }
                return try MariaDBSession(server, hosts: hosts, purpose: purpose, timeouts: timeouts)
            }
        }
    }
}
