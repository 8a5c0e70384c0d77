import Domain
import Relay
import Synchronization
import TestSupport
import Testing

@testable import Storage

/// Another user's challenge reads as not found: no statement finds a row.
@Suite(.mayBlock) struct ForeignTests {
    /// The number of rows that reads found.
    private final class Found: Sendable {
        let rows = Mutex(0)
    }

    @Test(arguments: [Engine.file, .mariadb]) func foreignChallengeReadsAsNotFound(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let filled = try database.open()
        try await Sample.fill(filled, at: database.url)
        filled.close()
        let found = Found()
        let store = try Store.watched(at: database.url) { (steps, session) throws(SessionFailure) in
            let results = try session.run(steps)
            found.rows.withLock { $0 += results.reduce(0) { $0 + $1.count } }
            return results
        }
        defer { store.close() }

        #expect(try await store.challenge(Sample.id(1), of: Sample.id(2) as UserID) == nil)
        #expect(try await store.challenge(Sample.id(1), of: Sample.id(2) as WebsiteID) == nil)
        #expect(found.rows.withLock { $0 } == 0)
        // The owner's challenge is read, with its step.
        #expect(try await store.challenge(Sample.id(2), of: Sample.id(2) as UserID)?.steps.count == 1)
        #expect(found.rows.withLock { $0 } == 2)
        #expect(try await store.challenge(Sample.id(2), of: Sample.id(1) as WebsiteID)?.steps.count == 1)
        #expect(found.rows.withLock { $0 } == 4)
    }
}
