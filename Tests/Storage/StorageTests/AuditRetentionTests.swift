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

    @Test(arguments: engines) func oldLinksAreDeletedBehindACheckpoint(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        let store = try fixture.open(at: time)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: time.now())
        for _ in 0..<30 { _ = try await store.run(AuditFixture.script()) }
        time.advance(by: .seconds(100))
        let middle = time.now()
        time.advance(by: .seconds(100))
        for _ in 0..<20 { _ = try await store.run(AuditFixture.script()) }
        let heads = try fixture.heads()
        let later = time.now() + .seconds(86_400 * 30)
        #expect(try AuditFixture.dropAll(store, before: middle) == 30)
        var check = try fixture.verify(heads: heads, at: later)
        #expect(check.findings == [])
        #expect((check.rows, check.links) == (20, 20))
        #expect(try fixture.rows("SELECT operation FROM audit_detail").count == 20)
        // The newest row stays.
        time.advance(by: .seconds(100))
        #expect(try AuditFixture.dropAll(store, before: time.now()) == 19)
        _ = try await store.run(AuditFixture.script())
        check = try fixture.verify(heads: heads, at: later)
        #expect(check.findings == [])
        #expect(check.rows == 2)
    }

    /// The clock of a relay is ahead, and it deletes what is not old. Its checkpoint shows that, and the
    /// heads.
    @Test(arguments: engines) func deletionByAWrongClockIsNamed(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        let store = try fixture.open(at: time)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: time.now())
        for _ in 0..<5 { _ = try await store.run(AuditFixture.script()) }
        #expect(try AuditFixture.dropAll(store, before: time.now() + .seconds(1)) == 4)
        #expect(try fixture.verify(at: time.now()).findings.map(\.kind) == [.writer])
        #expect(try fixture.verify(at: time.now() + .seconds(86_400 * 8)).findings == [])
    }

    /// Links that are younger than the time of the checkpoint were not deleted by retention.
    @Test(arguments: engines) func headYoungerThanTheCheckpointIsNamed(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        let store = try fixture.open(at: time)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: time.now())
        for _ in 0..<3 { _ = try await store.run(AuditFixture.script()) }
        let heads = try fixture.heads()
        time.advance(by: .seconds(86_400))
        let before = time.now()
        time.advance(by: .seconds(86_400 * 30))
        _ = try await store.run(AuditFixture.script())
        #expect(try AuditFixture.dropAll(store, before: before) == 3)
        #expect(try fixture.verify(heads: heads, at: time.now()).findings == [])
        // The same checkpoint, as if it had been made for an earlier time by somebody with the key.
        let authenticator = try RowAuthenticator(keys: [AuditFixture.key])
        let checkpoint = try fixture.rows("SELECT writer, sequence, hash, at FROM audit_checkpoint WHERE sequence = 3")[
            0]
        let early = SQLValue.text((heads[0].at.prefix(4) == "2026" ? "2025" : "2026") + heads[0].at.dropFirst(4))
        let values = [
            SQLValue.blob(try checkpoint.blob("writer")), .integer(3), .blob(try checkpoint.blob("hash")), early,
        ]
        let mac = Hex.encode(authenticator.mac(of: values, in: .auditCheckpoint, rights: 0))
        guard case .text(let at) = early else { return }
        try fixture.forge("UPDATE audit_checkpoint SET at = '\(at)', mac = x'\(mac)' WHERE sequence = 3")
        let found = try fixture.verify(heads: heads, at: time.now()).findings
        #expect(found.map(\.kind) == [.truncated])
    }

    /// A writer whose whole chain was deleted leaves no rows, and its heads are still right.
    @Test(arguments: engines) func writersOfDeletedChainsAreDeleted(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        for _ in 0..<3 {
            let tool = try fixture.open(at: time)
            defer { tool.close() }
            try AuditFixture.write(1, to: tool)
        }
        let heads = try fixture.heads()
        time.advance(by: .seconds(86_400))
        let before = time.now()
        time.advance(by: .seconds(86_400 * 20))
        let store = try fixture.open(at: time)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: time.now())
        try AuditFixture.write(1, to: store)
        // Their programs may still run.
        #expect(try AuditFixture.dropAll(store, before: before) == 3)
        #expect(try fixture.rows("SELECT id FROM audit_writer").count == 4)
        #expect(try fixture.verify(heads: heads, at: time.now()).findings == [])
        time.advance(by: .seconds(86_400 * 20))
        #expect(try AuditFixture.dropAll(store, before: before) == 0)
        #expect(try fixture.rows("SELECT id FROM audit_writer").count == 1)
        let checkpoints = try fixture.rows("SELECT writer, sequence FROM audit_checkpoint")
        #expect(try checkpoints.map { try $0.blob("writer") } == [AuditCheckpoint.retired])
        #expect(try checkpoints.map { try $0.integer("sequence") } == [3])
        #expect(try fixture.verify(heads: heads, at: time.now()).findings == [])
        // A chain that retention has not deleted is still missed, and the checkpoint cannot be written anew.
        let newest = try fixture.heads()
        let writer = "x'\(Hex.encode(try #require(newest.first).writer))'"
        try fixture.forge(
            "DELETE FROM audit", "DELETE FROM audit_link", "DELETE FROM audit_writer WHERE id = \(writer)")
        #expect(try fixture.verify(heads: newest, at: time.now()).findings.map(\.kind) == [.truncated])
        try fixture.forge("UPDATE audit_checkpoint SET at = '2100-01-01 00:00:00.000'")
        let found = try fixture.verify(heads: newest, at: time.now()).findings
        #expect(found.map(\.kind) == [.writer, .truncated])
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
