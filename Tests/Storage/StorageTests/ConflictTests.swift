import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// Two relays on one MariaDB, and other sessions that hold locks.
@Suite(.mayBlock) struct ConflictTests {
    private static let raise = Statement("UPDATE counter SET n = n + 1 WHERE id = :id")
    private static let lock = Statement("UPDATE counter SET n = n + 0 WHERE id = :id")
    private static let deadlocks = Statement(
        """
        SELECT CAST(variable_value AS SIGNED) AS count FROM information_schema.global_status
        WHERE variable_name = :name
        """)

    private func database() throws -> TestDatabase { try Engine.mariadb.database() }

    @Test func deadlockIsRetried() async throws {
        let database = try database()
        let (one, two) = (try database.open(), try database.open())
        defer {
            one.close()
            two.close()
        }
        for id in 1...2 { _ = try await one.run(TestScript.counter(Int64(id))) }
        func crossing(_ first: Int64, _ second: Int64) -> Script {
            Script("test.cross", writes: [first, second].map { Self.raise(id: .integer($0)) })
        }
        let before = try await deadlockCount(one)
        var rounds = 0
        repeat {
            rounds += 1
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<25 {
                    group.addTask { _ = try await one.run(crossing(1, 2)) }
                    group.addTask { _ = try await two.run(crossing(2, 1)) }
                }
                try await group.waitForAll()
            }
        } while try await deadlockCount(one) == before && rounds < 400
        #expect(try await deadlockCount(one) > before)
        for id in 1...2 {
            #expect(try await one.run(TestScript.value(of: Int64(id))).row(0).integer("n") == Int64(50 * rounds))
        }
    }

    private func deadlockCount(_ store: Store) async throws -> Int64 {
        try await store.run(Script("test.status", reads: [Self.deadlocks(name: .text("Innodb_deadlocks"))]))
            .row(0).integer("count")
    }

    @Test func lockWaitDelaysOthersOnlyBriefly() async throws {
        let database = try database()
        var options = StoreOptions()
        options.deadline = .seconds(120)
        let store = try database.open(options: options)
        defer { store.close() }
        for id in 1...2 { _ = try await store.run(TestScript.counter(Int64(id))) }
        let holder = try database.url.session(.writing)
        try holder.begin(.writing)
        _ = try holder.run([Self.lock(id: 1)])
        async let blocked = store.run(TestScript.raise(1))
        async let free = store.run(TestScript.raise(2))
        #expect(try await free.row(0).integer("done") == 1)
        holder.rollBack()
        #expect(try await blocked.row(0).integer("done") == 1)
    }

    @Test func permanentLockIsUnavailable() async throws {
        let database = try database()
        var options = StoreOptions()
        options.deadline = .seconds(2)
        let store = try database.open(options: options)
        defer { store.close() }
        _ = try await store.run(TestScript.counter(1))
        let holder = try database.url.session(.writing)
        try holder.begin(.writing)
        _ = try holder.run([Self.lock(id: 1)])
        await #expect(throws: Submission.late) { try await store.run(TestScript.raise(1)) }
        holder.rollBack()
        #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 0)
        #expect(try await store.run(TestScript.raise(1)).row(1).integer("n") == 1)
    }

    @Test func writeLockOfAnotherProcessIsAwaited() async throws {
        let database = try Engine.file.database()
        let store = try database.open()
        defer { store.close() }
        _ = try await store.run(TestScript.counter(1))
        let holder = try database.url.session(.writing)
        try holder.begin(.writing)
        _ = try holder.run([Self.lock(id: 1)])
        async let blocked = store.run(TestScript.raise(1))
        // Reads continue meanwhile.
        #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 0)
        try holder.commit()
        #expect(try await blocked.row(1).integer("n") == 1)
    }
}
