import Glibc
import Log
import Storage
import World

/// The kinds of store that the relay supports. A test over all kinds shows that they behave alike.
public enum StoreKind: String, Sendable, CaseIterable, CustomStringConvertible {
    case memory, file, mariadb

    /// The kinds that tests run on: all, or those that `TWOEFAY_STORES` names, separated by commas.
    /// `dev/quick` names the store in memory, for the loop while a change is written.
    public static let all: [StoreKind] = {
        guard let names = getenv("TWOEFAY_STORES").map({ String(cString: $0) }) else { return allCases }
        return names.split(separator: ",").map { name in
            guard let kind = StoreKind(rawValue: String(name)) else {
                // An error of whoever runs the tests: they must not pass on fewer stores than meant.
                fatalError("TWOEFAY_STORES names the unknown store \(name)")
            }
            return kind
        }
    }()

    public var description: String { rawValue }

    /// Returns an empty store for one rig. On MariaDB, it may be a database that an earlier rig has
    /// used.
    public func lent() async throws -> FreshStore {
        guard self == .mariadb else { return try await fresh() }
        return try await blocking { try FreshStore(from: .shared) }
    }

    /// Returns a new, empty store, which exists while the value is kept.
    public func fresh() async throws -> FreshStore {
        switch self {
        case .memory: return FreshStore(url: .memory, kept: nil)
        case .file:
            let directory = try TemporaryDirectory()
            return FreshStore(url: .sqlite(path: directory("twoefay.db")), kept: directory)
        case .mariadb:
            return try await blocking {
                let server = try MariaDBServer.shared()
                return FreshStore(url: try StorageURL(server.urlOverSocket(try server.freshDatabase())), kept: server)
            }
        }
    }
}

public final class FreshStore: Sendable {
    private let place: StorageURL
    private let kept: (any AnyObject & Sendable)?
    private let loan: StoreLoan?

    init(url: StorageURL, kept: (any AnyObject & Sendable)?) {
        place = url
        self.kept = kept
        loan = nil
    }

    init(lent loan: StoreLoan) {
        place = loan.database.url
        kept = nil
        self.loan = loan
    }

    /// The URL of the store. Somebody may open another store there at any time, so no later rig
    /// gets the same database.
    public var url: StorageURL {
        loan?.end()
        return place
    }

    /// Opens the store, and creates its tables if it has none.
    package func open(log: Log, options: StoreOptions) throws -> Store {
        if let store = try loan?.open(log: log, options: options) { return store }
        return try Store.open(url, schema: .migrate, time: SystemTime(), log: log, options: options)
    }

    /// Returns a MariaDB store, used with an account that has only the documented rights of a
    /// relay.
    public static func byRelaysAccount() async throws -> FreshStore {
        try await blocking {
            let server = try MariaDBServer.shared()
            let database = try server.freshDatabase()
            let account = "\(database)_relay"
            let log = Log(minimum: .warning)
            try Store.open(
                StorageURL(server.url(database)), schema: .migrate, time: SystemTime(), log: log, options: .patient
            ).close()
            try server.sql("CREATE USER \(account)@127.0.0.1")
            try server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON \(database).* TO \(account)@127.0.0.1")
            return FreshStore(url: try StorageURL(server.url(database, as: account)), kept: server)
        }
    }
}
