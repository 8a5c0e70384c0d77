import EventLoop
import Log
import Relay
import World

/// How much the store may do at once and how long it may take.
public struct StoreOptions: Sendable {
    /// After this long a script is answered with `.unavailable`, whatever has become of it.
    public var deadline: Duration = .seconds(5)
    /// Scripts in one transaction.
    public var batch = 128
    /// Scripts that may wait in a lane.
    public var waiting = 10_000

    public init() {}
}

/// What is done about the tables when a store is opened.
public enum SchemaRequirement: Sendable {
    /// They must be there and be those of this program.
    case require
    /// They are made, or brought up to date.
    case migrate
}

extension Store {
    /// Connects and looks at the tables, on the calling thread. A database in memory is always migrated.
    public static func open(
        _ url: StorageURL, schema: SchemaRequirement = .require, time: any TimeSource, log: Log,
        options: StoreOptions = StoreOptions(),
        worker: (String) throws -> any Worker = { try WorkerThread(name: $0) }
    ) throws(StoreFailure) -> Store {
        try open(
            url, schema: schema, migrations: Migration.all, time: time, log: log, options: options, worker: worker)
    }

    /// Over tables that are there; what each lane runs goes through what `watch` makes of its session.
    package static func open(
        _ url: StorageURL, time: any TimeSource, log: Log, options: StoreOptions,
        watch: (sending any Session) -> sending any Session
    ) throws(StoreFailure) -> Store {
        try open(
            url, schema: .require, migrations: Migration.all, time: time, log: log, options: options, watch: watch)
    }

    static func open(
        _ url: StorageURL, schema: SchemaRequirement, migrations: [Migration], time: any TimeSource, log: Log,
        options: StoreOptions,
        watch: (sending any Session) -> sending any Session = { $0 },
        worker: (String) throws -> any Worker = { try WorkerThread(name: $0) }
    ) throws(StoreFailure) -> Store {
        var limits = Lane.Limits()
        limits.batch = options.batch
        limits.waiting = options.waiting
        let schema = url == .memory ? .migrate : schema
        let version: Int64
        do {
            if schema == .migrate, url != .memory {
                let session = try url.session(.migrating)
                defer { session.close() }
                try migrations.migrate(session, url.dialect, now: time.now())
            }
            let session = try url.session(.writing)
            if url == .memory { try migrations.migrate(session, url.dialect, now: time.now()) }
            version = try migrations.check(session)
            let writes = try Lane(
                .writing, session: watch(session), worker: worker("store"), time: time, limits: limits,
                log: log.with([.lane: "writes"]))
            var reads: Lane?
            if url != .memory {
                do {
                    reads = try Lane(
                        .reading, session: watch(url.session(.reading)), worker: worker("store-reads"),
                        time: time, limits: limits, log: log.with([.lane: "reads"]))
                } catch {
                    writes.close()
                    throw error
                }
            }
            return Store(writes: writes, reads: reads, schemaVersion: version, limit: options.deadline, time: time)
        } catch let failure as SessionFailure {
            throw .unavailable("\(url): \(failure.message)")
        } catch {
            throw .unavailable("\(url): \(error)")
        }
    }
}

extension StorageURL {
    enum Use {
        case migrating
        case writing
        case reading
    }

    var dialect: Dialect {
        switch self {
        case .memory, .sqlite: .sqlite
        case .mariadb: .mariadb
        }
    }

    /// Connected and ready, or an error.
    func session(_ use: Use) throws(SessionFailure) -> sending any Session {
        switch self {
        case .memory: return try SQLiteSession(path: nil, mode: .writing, patience: .seconds(1))
        case .sqlite(let path):
            let mode: SQLiteSession.Mode =
                switch use {
                case .migrating: .creating
                case .writing: .writing
                case .reading: .readingOnly
                }
            return try SQLiteSession(path: path, mode: mode, patience: use == .migrating ? .seconds(30) : .seconds(1))
        case .mariadb(let server):
            var timeouts = MariaDBConnection.Timeouts()
            // A change of a large table takes its time.
            if use == .migrating { timeouts.read = 24 * 3600 }
            return try MariaDBSession(server, purpose: use == .reading ? .reading : .writing, timeouts: timeouts)
        }
    }
}
