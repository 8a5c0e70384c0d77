import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// The right to change the tables of a cluster. The row does on one node what it does on several.
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
            let claim = try MigrationLock(session, timeout: .seconds(3600))
            try claim.renew()
            return isReleased.withLock { $0 }
        }
        for _ in 0..<20 { try first.renew() }
        isReleased.withLock { $0 = true }
        first.release()
        #expect(try await second)
    }

    /// It was only slow: it does no more.
    @Test func expiredMigrationLockIsLost() throws {
        let slow = try MigrationLock(one)
        try slow.renew()
        let next = try MigrationLock(other, timeout: .zero)
        try next.renew()
        #expect(throws: SessionFailure.conflict("another program took over the migration of this database")) {
            try slow.renew()
        }
        // Nor does its leaving let anybody in.
        slow.release()
        try next.renew()
    }
}
