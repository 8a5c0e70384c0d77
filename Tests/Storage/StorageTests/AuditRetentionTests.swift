import Bytes
import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The deletion of old links, and the check of what is left.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditRetentionTests {
    static let engines = [Engine.file, .mariadb]

    private static func dropAll(_ store: Store, before: Timestamp) async throws -> Int {
        var count = 0
        while true {
            let dropped = try await store.drop(ExpiredRows(.audit, before: before), by: Sample.relay)
            let result = try #require(dropped)
            count += result.count
            if result.isLast { return count }
        }
    }

    private static let insertRelay = Statement("INSERT INTO relay VALUES (:relay, 0, :now)")

    /// A store whose clock the test sets, so that links have times of the test.
    private static func open(_ fixture: AuditFixture, _ time: TestTime) async throws -> Store {
        var options = StoreOptions.patient
        options.rows = try RowAuthenticator(keys: [AuditFixture.key])
        return try fixture.database.open(time: time, options: options)
    }

    @Test(arguments: engines) func oldLinksAreDeletedBehindACheckpoint(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        let store = try await Self.open(fixture, time)
        defer { store.close() }
        _ = try await store.run(
            Script("relay", writes: [Self.insertRelay(relay: .id(Sample.relay), now: .timestamp(time.now()))]))
        for _ in 0..<30 { _ = try await store.run(AuditFixture.script()) }
        time.advance(by: .seconds(100))
        let middle = time.now()
        time.advance(by: .seconds(100))
        for _ in 0..<20 { _ = try await store.run(AuditFixture.script()) }
        let heads = try await store.run(AuditHead.page(after: nil))
        #expect(try await Self.dropAll(store, before: middle) == 30)
        var check = try fixture.verify(heads: heads)
        #expect(check.findings == [])
        #expect((check.rows, check.links) == (20, 20))
        #expect(try fixture.rows("SELECT operation FROM audit_detail").count == 20)
        // The newest row stays.
        time.advance(by: .seconds(100))
        #expect(try await Self.dropAll(store, before: time.now()) == 19)
        _ = try await store.run(AuditFixture.script())
        check = try fixture.verify(heads: heads)
        #expect(check.findings == [])
        #expect(check.rows == 2)
    }

    /// Without a checkpoint, the beginning of a chain is missing.
    @Test(arguments: engines) func deletionBySomebodyElseIsNamed(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        for _ in 0..<10 { _ = try await store.run(AuditFixture.script()) }
        try fixture.forge("DELETE FROM audit WHERE link < 5", "DELETE FROM audit_link WHERE sequence < 5")
        #expect(try fixture.verify().findings.map(\.kind) == [.link])
        try fixture.forge(
            """
            INSERT INTO audit_checkpoint (writer, sequence, hash, at)
            SELECT writer, 4, former, at FROM audit_link WHERE sequence = 5
            """)
        #expect(try fixture.verify().findings.map(\.kind) == [.writer, .link])
    }
}
