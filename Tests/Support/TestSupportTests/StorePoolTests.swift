import Log
import Storage
import TestSupport
import Testing
import World

@Suite(.timeLimit(.minutes(15)), .mayBlock) struct StorePoolTests {
    private let pool = StorePool()
    private let log = Log(time: SystemTime(), sink: MemorySink())

    private func open(_ place: FreshStore) throws -> Store { try place.open(log: log, options: .patient) }

    private func value(_ sql: String, in store: Store) throws -> Int64 {
        try store.runBlocking(Script("test", reads: [.value(of: sql)])).row(0).integer("value")
    }

    private func write(_ sql: String, in store: Store) throws {
        _ = try store.runBlocking(Script("test", writes: [Statement(sql)()]))
    }

    private static let insert = "INSERT INTO task_lease (name, holder) VALUES ('retention', NULL)"

    /// Uses a database of the pool, and returns its name.
    private func name(_ use: (FreshStore, Store) throws -> Void = { _, _ in }) throws -> String {
        let place = try FreshStore(from: pool)
        let store = try open(place)
        defer { store.close() }
        try use(place, store)
        return try store.runBlocking(Script("test", reads: [.value(of: "SELECT DATABASE()")])).row(0).text("value")
    }

    @Test func nextRigGetsTheSameDatabaseWithoutRows() throws {
        var connections: [Int64] = []
        func useIt() throws -> String {
            try name { _, store in
                #expect(try value("SELECT count(*) FROM task_lease", in: store) == 0)
                try write(Self.insert, in: store)
                #expect(try value("SELECT count(*) FROM task_lease", in: store) == 1)
                connections.append(try value("SELECT CONNECTION_ID()", in: store))
            }
        }
        let first = try useIt()
        #expect(try useIt() == first)
        #expect(connections.count == 2 && Set(connections).count == 1)
    }

    @Test func databaseInUseIsNotLentAgain() throws {
        let place = try FreshStore(from: pool)
        let store = try open(place)
        try write(Self.insert, in: store)
        var rows: Int64?
        let other = try name { _, other in rows = try value("SELECT count(*) FROM task_lease", in: other) }
        #expect(rows == 0)
        #expect(try value("SELECT DATABASE() <> '\(other)'", in: store) == 1)
        #expect(try value("SELECT count(*) FROM task_lease", in: store) == 1)
        store.close()
    }

    @Test func databaseWithAKnownURLIsNotLentAgain() throws {
        let known = try name { place, _ in _ = place.url }
        #expect(try name() != known)
    }

    @Test func databaseWithASecondStoreIsNotLentAgain() throws {
        let shared = try name { place, store in
            let second = try open(place)
            try write(Self.insert, in: store)
            #expect(try value("SELECT count(*) FROM task_lease", in: second) == 1)
            second.close()
        }
        #expect(try name() != shared)
    }

    @Test(arguments: ["CREATE TABLE kept (id int)", "SET SESSION time_zone = '+02:00'", "TRUNCATE TABLE relay"])
    func databaseWithOtherChangesThanOfRowsIsNotLentAgain(change: String) throws {
        let changed = try name { _, store in try write(change, in: store) }
        #expect(try name() != changed)
    }

    @Test func databaseThatCannotBeEmptiedIsReplaced() throws {
        let server = try MariaDBServer.shared()
        let broken = try name()
        try server.sql("DROP DATABASE \(broken)")
        let next = try name { _, store in try write(Self.insert, in: store) }
        #expect(next != broken)
    }
}
