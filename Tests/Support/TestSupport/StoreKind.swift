import Log
import Storage
import World

/// The kinds of store that the relay supports. A test over all kinds shows that they behave alike.
public enum StoreKind: String, Sendable, CaseIterable, CustomStringConvertible {
    case memory, file, mariadb

    public static var all: [StoreKind] { allCases }

    public var description: String { rawValue }

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
    public let url: StorageURL
    private let kept: (any AnyObject & Sendable)?

    init(url: StorageURL, kept: (any AnyObject & Sendable)?) {
        self.url = url
        self.kept = kept
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
