import Bytes
import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The check of an audit to which programs write, and from which they delete, while it runs: nothing
/// is found.
///
/// Each test changes the store before the check runs a statement that contains a given text.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditBesideTests {
    static let engines = [Engine.file, .mariadb]
    private static let readsLinks = "FROM audit_link WHERE"
    private static let readsRows = "FROM audit a LEFT JOIN"

    /// The ids of writers are random, so that some of the new chains come after the one that is read.
    @Test(arguments: engines) func commandsThatBeginMeanwhileAreNotFound(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        try AuditFixture.write(10, to: store)
        let heads = try fixture.heads()
        for text in [Self.readsLinks, Self.readsRows] {
            let tools = try (0..<6).map { _ in try fixture.open("tool") }
            defer { for tool in tools { tool.close() } }
            let check = try fixture.verify(heads: heads, before: text) {
                for tool in tools { try AuditFixture.write(2, to: tool) }
                try AuditFixture.write(2, to: store)
            }
            #expect(check.findings == [], "\(text)")
        }
        #expect(try fixture.verify(heads: heads).findings == [])
    }

    /// Retention deletes the beginning of one chain and the whole other one: before their links are
    /// read, or after some of them.
    @Test(arguments: engines, [1, 2]) func retentionMeanwhileIsNotFound(_ engine: Engine, read: Int) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        let ended = try fixture.open(at: time, batch: 1)
        try AuditFixture.write(3, to: ended)
        ended.close()
        let store = try fixture.open(at: time, batch: 1)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: time.now())
        try AuditFixture.write(450, to: store)
        time.advance(by: .seconds(86_400))
        let before = time.now()
        // Not so long that another writer begins.
        time.advance(by: .seconds(86_400 * 8))
        try AuditFixture.write(5, to: store)
        let heads = try fixture.heads()
        let now = time.now()
        let check = try fixture.verify(heads: heads, before: Self.readsLinks, occurrence: read, at: now) {
            try AuditFixture.dropAll(store, before: before)
        }
        #expect(check.findings == [])
        #expect(try fixture.rows("SELECT 1 AS one FROM audit_link").count == 5)
        #expect(try fixture.verify(heads: heads, at: now).findings == [])
    }

    @Test(arguments: engines) func deletionOfAUserMeanwhileIsNotFound(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        let user = TestScript.fresh()
        for _ in 0..<3 { _ = try store.runBlocking(AuditFixture.script(user: user)) }
        let check = try fixture.verify(before: Self.readsRows) {
            let deletion = AuditFixture.script(event: "user.forgotten", user: user, note: nil)
            _ = try store.runBlocking(
                Script("forget", operation: deletion.operation, writes: deletion.writes + [Self.deleteWords()]))
        }
        #expect(check.findings == [])
        #expect(check.deletedDetails == 3)
    }

    private static let deleteWords = Statement("DELETE FROM audit_detail")

    /// Words of rows that came after the deletion may not be missing.
    @Test(arguments: engines) func onlyWordsBeforeTheDeletionMayBeMissing(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        let user = TestScript.fresh()
        for event in ["test", "user.forgotten", "later"] {
            _ = try store.runBlocking(AuditFixture.script(event: event, user: user))
        }
        try fixture.forge("DELETE FROM audit_detail")
        let check = try fixture.verify()
        #expect(check.findings.map(\.kind) == [.detail, .detail])
        #expect(check.findings.compactMap(\.id) == [2, 3])
        #expect(check.deletedDetails == 1)
        // Somebody pretends that the user was deleted later.
        try fixture.forge(
            "INSERT INTO audit (operation, at, event, user_id, writer, link) "
                + "SELECT x'\(String(repeating: "55", count: 16))', at, event, user_id, writer, link FROM audit WHERE id = 2"
        )
        #expect(try fixture.verify().findings.map(\.kind) == [.detail, .detail, .inserted])
    }
}
