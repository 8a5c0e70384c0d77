import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// A database that cannot grow: the request is refused, nothing partial is stored, and the store continues when
/// there is space again.
@Suite(.mayBlock) struct FullDiskTests {
    // SQLite reports its own size limit with the same error as a full disk.
    private static let noRoom = Statement("PRAGMA max_page_count = 1")
    private static let room = Statement("PRAGMA max_page_count = 1000000")

    @Test(arguments: [Engine.memory, .file])
    func fullDiskIsUnavailableWithoutPartialWrites(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await store.run(TestScript.counter(1))
            _ = try await store.run(Script("test.limit", writes: [Self.noRoom()]))
            let operation = TestScript.fresh()
            let large = String(repeating: "x", count: 100_000)
            let script = Script(
                "test.large", operation: operation,
                writes: TestScript.raise(1, operation: operation).writes
                    + [KeptRow.insert(id: 1, name: "large", body: large)])
            let failure = await #expect(throws: StoreFailure.self) { try await store.run(script) }
            guard case .unavailable(let message)? = failure else {
                Issue.record("\(String(describing: failure)) is not .unavailable")
                return
            }
            #expect(message.contains("full"))
            #expect(store.fault == message)
            #expect(try await store.run(TestScript.wasDone(operation)).row(0).integer("done") == 0)
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 0)
            _ = try await store.run(Script("test.limit", writes: [Self.room()]))
            _ = try await store.run(script)
            #expect(store.fault == nil)
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 1)
        }
    }
    /// A failure that was logged is not logged again after each transaction that writes nothing.
    @Test func fullDiskEndsWithTheNextSuccessfulWrite() async throws {
        let database = try Engine.file.database()
        let store = try database.open()
        defer { store.close() }
        _ = try await store.run(TestScript.counter(1))
        _ = try await store.run(Script("test.limit", writes: [Self.noRoom()]))
        let large = Script(
            "test.large", writes: [KeptRow.insert(id: 1, name: "large", body: String(repeating: "x", count: 100_000))])
        for _ in 0..<3 {
            await #expect(throws: StoreFailure.self) { try await store.run(large) }
            // This counter does not exist.
            #expect(try await store.run(TestScript.raise(7)).row(0).integer("done") == 0)
        }
        #expect(database.sink.lines.count { $0.contains("event=store.") } == 1)
        _ = try await store.run(Script("test.limit", writes: [Self.room()]))
        #expect(store.fault != nil)
        _ = try await store.run(large)
        #expect(store.fault == nil)
        #expect(database.sink.lines.count { $0.contains("event=store.recovered") } == 1)
        withExtendedLifetime(database) {}
    }
}
