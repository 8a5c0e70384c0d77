import Domain
import EventLoop
import Log
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// A challenge of somebody else is as little to the store as one that there is not: no statement finds a row.
struct ForeignTests {
    /// Counts the rows that reads find.
    ///
    /// Guard: like every session, it is used by its lane's thread alone.
    private final class Counting: Session {
        private let inner: any Session
        private let found: Found

        final class Found: Sendable {
            let rows = Mutex(0)
        }

        init(_ inner: any Session, _ found: Found) {
            self.inner = inner
            self.found = found
        }

        func begin(_ purpose: Purpose) throws(SessionFailure) { try inner.begin(purpose) }
        func commit() throws(SessionFailure) { try inner.commit() }
        func rollBack() { inner.rollBack() }
        func execute(_ sql: String) throws(SessionFailure) { try inner.execute(sql) }
        func close() { inner.close() }
        var changes: Int64 { inner.changes }

        func run(_ steps: [Step]) throws(SessionFailure) -> [Rows] {
            let results = try inner.run(steps)
            found.rows.withLock { $0 += results.reduce(0) { $0 + $1.count } }
            return results
        }
    }

    @Test(arguments: [Engine.file, .mariadb]) func nothingIsReadOfSomebodyElsesChallenge(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let filled = try database.open()
        try await Sample.fill(filled, at: database.url)
        filled.close()
        let found = Counting.Found()
        func lane(_ purpose: Purpose, _ use: StorageURL.Use) throws -> Lane {
            Lane(
                purpose, session: Counting(try database.url.session(use), found),
                worker: try WorkerThread(name: "test"), time: SystemTime(), limits: Lane.Limits(),
                log: Log(time: SystemTime(), sink: MemorySink()))
        }
        let store = Store(
            writes: try lane(.writing, .writing), reads: try lane(.reading, .reading), schemaVersion: 1,
            limit: .seconds(30), time: SystemTime())
        defer { store.close() }

        #expect(try await store.challenge(Sample.id(1), of: Sample.id(2) as UserID) == nil)
        #expect(try await store.challenge(Sample.id(1), of: Sample.id(2) as WebsiteID) == nil)
        #expect(found.rows.withLock { $0 } == 0)
        // The owner's is read, and its step with it.
        #expect(try await store.challenge(Sample.id(2), of: Sample.id(2) as UserID)?.steps.count == 1)
        #expect(found.rows.withLock { $0 } == 2)
        #expect(try await store.challenge(Sample.id(2), of: Sample.id(1) as WebsiteID)?.steps.count == 1)
        #expect(found.rows.withLock { $0 } == 4)
    }
}
