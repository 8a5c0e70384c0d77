import Glibc
import Log
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// The engines, each of which must keep the contract.
enum Engine: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory
    case file
    case mariadb

    var testDescription: String { rawValue }

    /// Creates a fresh database with the test's tables.
    func database(_ migrations: [Migration] = TestSchema.all) throws -> TestDatabase {
        switch self {
        case .memory: return TestDatabase(url: .memory, migrations: migrations)
        case .file:
            let directory = try TemporaryDirectory()
            return TestDatabase(
                url: .sqlite(path: directory("test.db")), migrations: migrations, directory: directory)
        case .mariadb:
            let server = try MariaDBServer.shared()
            return TestDatabase(
                url: try StorageURL(server.url(try server.freshDatabase())), migrations: migrations)
        }
    }
}

/// Opens a fresh database while `body` runs.
func withStore(_ engine: Engine, _ body: (Store) async throws -> Void) async throws {
    let database = try engine.database()
    defer { withExtendedLifetime(database) {} }
    let store = try database.open()
    defer { store.close() }
    try await body(store)
}

final class TestDatabase: Sendable {
    let url: StorageURL
    let migrations: [Migration]
    let sink = ObservedSink()
    private let directory: TemporaryDirectory?

    init(url: StorageURL, migrations: [Migration], directory: TemporaryDirectory? = nil) {
        self.url = url
        self.migrations = migrations
        self.directory = directory
    }

    func open(
        _ schema: SchemaRequirement = .migrate, migrations: [Migration]? = nil, time: any TimeSource = SystemTime(),
        options: StoreOptions = .patient
    ) throws -> Store {
        try Store.open(
            url, schema: schema, migrations: migrations ?? self.migrations, time: time,
            log: Log(sink: sink), options: options)
    }
}

func write(_ text: String, to path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    try #require(file >= 0, "\(path)")
    defer { close(file) }
    try #require(Glibc.write(file, text, text.utf8.count) == text.utf8.count)
}
