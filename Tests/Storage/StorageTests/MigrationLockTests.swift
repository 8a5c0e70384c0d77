import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// The lock for changes of a cluster's tables. Its row works the same on one node as on several.
@Suite(.mayBlock) struct MigrationLockTests {
    private let database: TestDatabase
    private let one: any Session
    private let other: any Session

    init() throws {
        database = try Engine.mariadb.database()
        (one, other) = (try database.url.session(.migrating), try database.url.session(.migrating))
    }

    @Test func migrationLockIsUsedOnlyInACluster() throws {
        #expect(try !MigrationLock.isNeeded(one))
    }

    @Test func heldMigrationLockBlocksOthers() async throws {
        let first = try MigrationLock(one)
        let isReleased = Mutex(false)
        let url = database.url
        async let second: Bool = blocking {
            let session = try url.session(.migrating)
            defer { session.close() }
            let lock = try MigrationLock(session, timeout: .seconds(3600))
            try lock.renew()
            return isReleased.withLock { $0 }
        }
        for _ in 0..<20 { try first.renew() }
        isReleased.withLock { $0 = true }
        first.release()
        #expect(try await second)
    }

    /// The slow program was still alive, but must not continue.
    @Test func expiredMigrationLockIsLost() throws {
        let slow = try MigrationLock(one)
        try slow.renew()
        let next = try MigrationLock(other, timeout: .zero)
        try next.renew()
        #expect(throws: SessionFailure.conflict("another program took over the migration of this database")) {
            try slow.renew()
        }
        // Its release of the lock admits no other program either.
        slow.release()
        try next.renew()
    }
}
