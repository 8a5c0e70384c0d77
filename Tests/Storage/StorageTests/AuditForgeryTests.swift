import Bytes
import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// Changes by which an attacker wants to hide other ones, or to disturb the check: each is named, and
/// nothing else.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditForgeryTests {
    static let engines = [Engine.file, .mariadb]
    private static let stranger = "x'" + String(repeating: "66", count: 16) + "'"
    private static let operation = "x'" + String(repeating: "55", count: 16) + "'"
    private static let digest = "x'" + String(repeating: "77", count: 32) + "'"

    /// Fills the audit through two programs.
    private static func filled(_ engine: Engine) throws -> AuditFixture {
        let fixture = try AuditFixture(engine)
        for _ in 0..<2 {
            let store = try fixture.open(batch: 4)
            defer { store.close() }
            try AuditFixture.write(20, to: store)
        }
        return fixture
    }

    @Test(arguments: engines) func rowOfAnUnknownWriterIsTheOnlyFinding(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        try fixture.forge(
            "INSERT INTO audit (operation, at, event, writer, link) "
                + "SELECT \(Self.operation), at, 'user.locked', \(Self.stranger), 1 FROM audit WHERE id = 3")
        let found = try fixture.verify(heads: heads).findings
        #expect(found.map(\.kind) == [.inserted])
        #expect(found.first?.id == 41)
    }

    /// An unsigned link names rows as the attacker wrote them: an inserted one and a changed one.
    @Test(arguments: engines) func unsignedLinkHidesNoRow(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        let last = try #require(heads.first)
        let writer = "x'\(Hex.encode(last.writer))'"
        try fixture.forge(
            "UPDATE audit SET outcome = 'other' WHERE id = 5",
            "INSERT INTO audit (operation, at, event, writer, link) "
                + "SELECT \(Self.operation), at, 'user.locked', \(writer), \(last.sequence + 1) FROM audit WHERE id = 3"
        )
        let entries = try fixture.rows("SELECT \(AuditRow.list) FROM audit WHERE id = 5 OR id > 40").map { row in
            let values = try AuditRow.columns.indices.map { try row.value(at: $0) }
            return Hex.encode(try row.blob("operation") + AuditRow.digest(values))
        }
        #expect(entries.count == 2)
        try fixture.forge(
            "INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature) "
                + "SELECT writer, sequence + 1, at, hash, x'\(entries.joined())', hash, signature FROM audit_link "
                + "WHERE writer = \(writer) AND sequence = \(last.sequence)")
        let found = try fixture.verify(heads: heads).findings
        #expect(found.map(\.kind.rawValue).sorted() == ["changed", "inserted", "link"])
        #expect(found.first { $0.kind == .changed }?.id == 5)
        #expect(found.first { $0.kind == .inserted }?.id == 41)
        #expect(found.first { $0.kind == .link }?.link == last.sequence + 1)
    }

    /// SQLite stores values of any type in any column.
    @Test func valuesOfWrongTypesDoNotStopTheCheck() throws {
        let fixture = try Self.filled(.file)
        defer { fixture.close() }
        let writer = try #require(try fixture.heads().first).writer
        let isLink = "writer = x'\(Hex.encode(writer))' AND sequence = 2"
        for change in ["signature = 'x'", "at = x'00'", "former = 7", "hash = 'x'", "entries = 'x'", "sequence = 'x'"] {
            let kept = try fixture.rows("SELECT hash FROM audit_link WHERE \(isLink)")[0].blob("hash")
            try fixture.changing(
                ["audit_link"], where: isLink, ["UPDATE audit_link SET \(change) WHERE \(isLink)"]
            ) {
                let found = try fixture.verify().findings.filter { $0.kind == .link }
                #expect(found.contains { $0.writer == writer && $0.link == 2 }, "\(change)")
                try fixture.forge("DELETE FROM audit_link WHERE sequence = 'x'")
            }
            #expect(try fixture.rows("SELECT hash FROM audit_link WHERE \(isLink)")[0].blob("hash") == kept)
        }
        #expect(try fixture.verify().findings == [])
    }

    /// Words of another type are not in the digest as they stand, and readers skip them.
    @Test func wordsOfWrongTypesAreNamed() throws {
        let fixture = try Self.filled(.file)
        defer { fixture.close() }
        let isFirst = "operation = (SELECT operation FROM audit WHERE id = 1)"
        for change in ["changes = x'41'", "reason = x''", "note = CAST(note AS BLOB)", "salt = 'text'"] {
            let statement = "UPDATE audit_detail SET \(change) WHERE \(isFirst)"
            try fixture.changing(["audit_detail"], where: isFirst, [statement]) {
                let found = try fixture.verify().findings
                #expect(found.map(\.kind) == [.detail] && found.first?.id == 1, "\(change)")
            }
        }
        #expect(try fixture.verify().findings == [])
    }

    /// Somebody adds words to a row that has none, and to one whose words were deleted with their user.
    @Test(arguments: engines, ["x'11'", "'salt'"]) func addedWordsAreNamed(_ engine: Engine, salt: String) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        let user = [UInt8](repeating: 9, count: 16)
        try AuditFixture.write(1, to: store, note: nil)
        _ = try store.runBlocking(AuditFixture.script(user: user))
        _ = try store.runBlocking(AuditFixture.script(event: "user.forgotten", user: user, note: nil))
        try fixture.forge("DELETE FROM audit_detail")
        let before = try fixture.verify()
        #expect(before.findings == [] && before.deletedDetails == 1)
        try fixture.forge(
            "INSERT INTO audit_detail (operation, salt, note) "
                + "SELECT operation, \(salt), 'planted' FROM audit WHERE id < 3")
        let after = try fixture.verify()
        #expect(after.findings.map(\.kind) == [.detail, .detail])
        #expect(Set(after.findings.map(\.id)) == [1, 2])
        #expect(after.deletedDetails == 0)
    }

    /// Reads of binary keys do not find keys of other types.
    @Test func keysOfWrongTypesAreNamed() throws {
        let fixture = try Self.filled(.file)
        defer { fixture.close() }
        let columns = [
            ("audit_writer", "id", "program, host, started_at, public_key, mac", AuditFinding.Kind.writer),
            ("audit_checkpoint", "writer", "sequence, hash, at, mac", .writer),
            ("audit_link", "writer", "sequence, at, former, entries, hash, signature", .link),
            ("audit_detail", "operation", "salt, note, changes, reason", .detail),
        ]
        try fixture.forge(
            "INSERT INTO audit_checkpoint SELECT 'kept', 1, x'00', at, NULL FROM audit_link LIMIT 1")
        for (table, key, others, kind) in columns {
            try fixture.forge(
                "INSERT INTO \(table) (\(key), \(others)) SELECT 'planted', \(others) FROM \(table) LIMIT 1")
            let found = try fixture.verify().findings.filter { $0.text.contains("'planted'") }
            #expect(found.map(\.kind) == [kind], "\(table)")
            #expect(found.first?.text.contains(table) == true)
            try fixture.forge("DELETE FROM \(table) WHERE \(key) = 'planted'")
        }
    }

    @Test(arguments: engines) func lowestNumbersAreRead(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let lowest = "(-9223372036854775807 - 1)"
        try fixture.forge(
            "INSERT INTO audit (id, operation, at, event) SELECT \(lowest), \(Self.operation), at, 'user.locked' "
                + "FROM audit WHERE id = 3")
        let rows = try fixture.verify().findings
        #expect(rows.map(\.kind) == [.inserted] && rows.first?.id == .min)
        try fixture.forge("DELETE FROM audit WHERE id < 0")
        try fixture.forge(
            "INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature) "
                + "SELECT writer, \(lowest), at, former, entries, hash, signature FROM audit_link ORDER BY writer, sequence "
                + "LIMIT 1")
        let links = try fixture.verify().findings
        #expect(links.map(\.kind) == [.link] && links.first?.link == .min)
    }

    /// A link without a number comes last, one with a fraction between others. Neither must hide the
    /// links that no row names any more.
    @Test(arguments: ["x'00'", "1.5"]) func linkWithoutANumberHidesNoRemovedRows(_ number: String) throws {
        let fixture = try AuditFixture(.file)
        defer { fixture.close() }
        let store = try fixture.open(batch: 1)
        let links = AuditReads.linksOfPage
        try AuditFixture.write(2 * links, to: store)
        store.close()
        try fixture.forge(
            "DELETE FROM audit_detail WHERE operation IN (SELECT operation FROM audit WHERE link > \(links))",
            "DELETE FROM audit WHERE link > \(links)",
            "INSERT INTO audit_link SELECT writer, \(number), at, former, entries, hash, signature FROM audit_link "
                + "WHERE sequence = 1")
        let found = try fixture.verify().findings
        #expect(found.count { $0.kind == .removed } == links)
        #expect(found.count { $0.kind == .link } == 1)
        #expect(found.count == links + 1)
    }

    /// A false head above the genuine one does not hide that the end of the chain is missing.
    @Test(arguments: engines) func falseHeadHidesNoTruncation(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        let head = try #require(heads.last)
        let forged = try #require(AuditHead(line: head.line.replacing("\"sequence\":", with: "\"sequence\":9")))
        #expect(try fixture.verify(heads: heads + [forged]).findings.map(\.kind) == [.head])
        let writer = "writer = x'\(Hex.encode(head.writer))'"
        try fixture.forge(
            "DELETE FROM audit WHERE \(writer) AND link > 1", "DELETE FROM audit_link WHERE \(writer) AND sequence > 1")
        let found = try fixture.verify(heads: heads + [forged]).findings
        #expect(found.map(\.kind) == [.head, .truncated])
        #expect(found.allSatisfy { $0.writer == head.writer })
    }

    /// Somebody sets the times of links back, so that retention deletes them and signs a checkpoint.
    @Test(arguments: engines) func retentionDeletesOnlyGenuineLinks(_ engine: Engine) async throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        let store = try fixture.open()
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: Sample.now)
        try AuditFixture.write(1, to: store)
        let head = try #require(heads.first)
        let writer = "writer = x'\(Hex.encode(head.writer))'"
        let links = try fixture.rows("SELECT sequence FROM audit_link WHERE \(writer)").count
        try fixture.forge("UPDATE audit_link SET at = '2020-01-01 00:00:00.000' WHERE \(writer)")
        try AuditFixture.dropAll(store, before: Timestamp(seconds: 1_600_000_000))
        #expect(try fixture.rows("SELECT writer FROM audit_checkpoint").isEmpty)
        let found = try fixture.verify(heads: heads).findings.filter { $0.kind == .link }
        #expect(found.count == links)
        #expect(found.allSatisfy { $0.writer == head.writer })
    }

    /// A chain whose beginning is harmed stays. The others are deleted.
    @Test(arguments: engines, ["entries = x''", "signature = \(digest)", "former = \(digest)", "sequence = 900"])
    func harmedChainStopsNoOther(_ engine: Engine, change: String) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        for _ in 0..<3 {
            let store = try fixture.open(at: time)
            defer { store.close() }
            try AuditFixture.write(2, to: store)
        }
        time.advance(by: .seconds(86_400))
        let store = try fixture.open(at: time)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: time.now())
        try AuditFixture.write(1, to: store)
        let before = time.now()
        let first = try fixture.rows("SELECT min(writer) AS writer FROM audit_link WHERE at < '\(before.sql)'")[0]
        let writer = "writer = x'\(Hex.encode(try first.blob("writer")))'"
        try fixture.forge("UPDATE audit_link SET \(change) WHERE \(writer) AND sequence = 1")
        try AuditFixture.dropAll(store, before: before)
        let left = try fixture.rows("SELECT DISTINCT writer FROM audit_link WHERE at < '\(before.sql)'")
        #expect(left.count == 1)
        #expect(try left.first?.blob("writer") == (try first.blob("writer")))
    }
}
