import Bytes
import Glibc
import TestSupport
import Testing
import World

@testable import Storage

/// Changes of the audit by somebody who can write to the store: each one is found and named.
///
/// With `TWOEFAY_AUDIT_ROWS` and `TWOEFAY_AUDIT_PLACES` the tests use other numbers
/// (docs/operators/audit.md has a command).
@Suite(.timeLimit(.minutes(60)), .mayBlock) struct AuditVerificationTests {
    static let engines = [Engine.file, .mariadb]
    private static let count = number("TWOEFAY_AUDIT_ROWS", 2_000)
    private static let places = number("TWOEFAY_AUDIT_PLACES", 2)

    private static func number(_ name: String, _ normal: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? normal
    }

    /// Fills the audit through two programs.
    private static func filled(_ engine: Engine) throws -> AuditFixture {
        let fixture = try AuditFixture(engine)
        for batch in [16, 128] {
            let store = try fixture.open(batch: batch)
            defer { store.close() }
            for start in stride(from: 0, to: count / 2, by: 10_000) {
                try AuditFixture.write(min(10_000, count / 2 - start), to: store)
            }
        }
        return fixture
    }

    private struct Change {
        let name: String
        let kind: AuditFinding.Kind
        let sql: String

        init(_ name: String, _ kind: AuditFinding.Kind, _ sql: String) {
            self.name = name
            self.kind = kind
            self.sql = sql
        }
    }

    private static let other = "x'" + String(repeating: "77", count: 16) + "'"
    private static let digest = "x'" + String(repeating: "77", count: 32) + "'"

    /// The changes of a row. ID stands for its number.
    private static let rowChanges = [
        ("id", "-1"), ("at", "'2020-01-01 00:00:00.000'"), ("event", "'other'"), ("website_id", other),
        ("user_id", other), ("challenge_id", other), ("device_id", other), ("outcome", "'8'"), ("outcome", "NULL"),
        ("proof", "'code'"), ("actor", "'nobody'"), ("request", "'1'"), ("detail", "NULL"), ("detail", digest),
        ("writer", other), ("writer", "NULL"), ("link", "link + 1"),
    ].map { Change($0.0, .changed, "UPDATE audit SET \($0.0) = \($0.1) WHERE id = ID") }

    @Test(arguments: engines) func everyChangedRowIsNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        #expect(try fixture.verify().findings == [])
        for change in Self.rowChanges {
            for _ in 0..<Self.places {
                let id = Int64.random(in: 1...Int64(Self.count))
                let operation = try fixture.rows("SELECT operation FROM audit WHERE id = \(id)")[0].blob("operation")
                try fixture.changing(
                    ["audit"], where: "operation = x'\(Hex.encode(operation))'",
                    [change.sql.replacing("ID", with: "\(id)")]
                ) {
                    let found = try fixture.verify().findings
                    #expect(found.map(\.kind) == [.changed], "\(change.name) of \(id)")
                    #expect(found.first?.operation == operation)
                }
            }
        }
        #expect(try fixture.verify().findings == [])
    }

    @Test(arguments: engines) func removedAndInsertedRowsAreNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        for _ in 0..<Self.places * 3 {
            let id = Int64.random(in: 1...Int64(Self.count))
            let row = try fixture.rows("SELECT operation, link FROM audit WHERE id = \(id)")[0]
            let (operation, link) = (try row.blob("operation"), try row.integer("link"))
            let isRow = "operation = x'\(Hex.encode(operation))'"
            try fixture.changing(["audit"], where: isRow, ["DELETE FROM audit WHERE \(isRow)"]) {
                let found = try fixture.verify().findings
                #expect(found.map(\.kind) == [.removed])
                #expect(found.first?.operation == operation)
                #expect(found.first?.link == link)
            }
            try fixture.changing(
                ["audit"], where: isRow, ["UPDATE audit SET operation = \(Self.other) WHERE id = \(id)"]
            ) {
                let found = try fixture.verify().findings
                #expect(found.map(\.kind) == [.inserted, .removed])
                #expect(found.first?.id == id)
                try fixture.forge("DELETE FROM audit WHERE operation = \(Self.other)")
            }
            // Two rows change places.
            try fixture.forge("UPDATE audit SET id = -2 WHERE id = \(id)")
            #expect(try fixture.verify().findings.map(\.operation) == [operation])
            try fixture.forge("UPDATE audit SET id = \(id) WHERE id = -2")
        }
        #expect(try fixture.verify().findings == [])
    }

    @Test(arguments: engines) func changedLinksAreNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let changes = [
            "UPDATE audit_link SET at = '2020-01-01 00:00:00.000' WHERE ",
            "UPDATE audit_link SET former = \(Self.digest) WHERE ",
            "UPDATE audit_link SET hash = \(Self.digest) WHERE ",
            "UPDATE audit_link SET signature = concat(hash, hash) WHERE ", "UPDATE audit_link SET entries = x'' WHERE ",
            "UPDATE audit_link SET entries = x'00' WHERE ", "DELETE FROM audit_link WHERE ",
            "UPDATE audit_link SET sequence = sequence + 1000000 WHERE ",
        ]
        let all = try fixture.rows("SELECT writer, sequence FROM audit_link ORDER BY writer, sequence")
        for change in changes {
            for _ in 0..<Self.places {
                let place = Int.random(in: 0..<(all.count - 1))
                let (writer, sequence) = (try all[place].blob("writer"), try all[place].integer("sequence"))
                // The last link of a chain needs the heads.
                guard try all[place + 1].blob("writer") == writer else { continue }
                let isLink = "writer = x'\(Hex.encode(writer))' AND sequence IN (\(sequence), \(sequence + 1_000_000))"
                let sql =
                    change.contains("concat") && engine == .file
                    ? change.replacing("concat(hash, hash)", with: "x''") : change
                try fixture.changing(["audit_link"], where: isLink, [sql + isLink]) {
                    let found = try fixture.verify().findings.filter { $0.kind == .link }
                    #expect(found.contains { $0.writer == writer && $0.link == sequence }, "\(change) \(sequence)")
                }
            }
        }
        #expect(try fixture.verify().findings == [])
    }

    @Test(arguments: engines) func changedWritersAndWordsAreNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let writer = try fixture.rows("SELECT id FROM audit_writer ORDER BY id")[0].blob("id")
        let isWriter = "id = x'\(Hex.encode(writer))'"
        for change in ["program = 'tool'", "host = 'other'", "public_key = x'04'", "mac = NULL"] {
            try fixture.changing(
                ["audit_writer"], where: isWriter, ["UPDATE audit_writer SET \(change) WHERE \(isWriter)"]
            ) {
                let found = try fixture.verify().findings.filter { $0.kind == .writer }
                #expect(found.first?.writer == writer)
            }
        }
        try fixture.changing(["audit_writer"], where: isWriter, ["DELETE FROM audit_writer WHERE \(isWriter)"]) {
            let found = try fixture.verify().findings.filter { $0.kind == .writer }
            #expect(found.first?.writer == writer)
        }
        for change in ["UPDATE audit_detail SET note = 'other' WHERE ", "DELETE FROM audit_detail WHERE "] {
            let id = Int64.random(in: 1...Int64(Self.count))
            let operation = try fixture.rows("SELECT operation FROM audit WHERE id = \(id)")[0].blob("operation")
            let isRow = "operation = x'\(Hex.encode(operation))'"
            try fixture.changing(["audit_detail"], where: isRow, [change + isRow]) {
                let found = try fixture.verify().findings
                #expect(found.map(\.kind) == [.detail])
                #expect(found.first?.id == id)
            }
        }
        #expect(try fixture.verify().findings == [])
    }

    /// The end of a chain is deleted with its rows. Only the heads show it.
    @Test(arguments: engines) func truncationNeedsTheHeads(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        #expect(heads.count == 2)
        #expect(heads.map { AuditHead(line: $0.line) } == heads)
        for head in heads {
            let writer = "writer = x'\(Hex.encode(head.writer))'"
            let kept: [Int64] = [0, 1, .random(in: 0..<head.sequence), head.sequence - 1]
            for last in kept {
                let isEnd = "\(writer) AND link > \(last)"
                try fixture.changing(["audit"], where: isEnd, ["DELETE FROM audit WHERE \(isEnd)"]) {
                    let isLinkOfEnd = "\(writer) AND sequence > \(last)"
                    try fixture.changing(
                        ["audit_link"], where: isLinkOfEnd, ["DELETE FROM audit_link WHERE \(isLinkOfEnd)"]
                    ) {
                        let found = try fixture.verify(heads: heads).findings
                        #expect(found.map(\.kind) == [.truncated])
                        #expect(found.first?.writer == head.writer)
                        #expect(found.first?.text == "the links \(last + 1) to \(head.sequence) are missing")
                        #expect(try fixture.verify().findings == [])
                    }
                }
            }
        }
        #expect(try fixture.verify(heads: heads).findings == [])
    }

    @Test(arguments: engines) func headOfAMissingChainIsNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        let id = Hex.encode(heads[0].writer)
        try fixture.forge(
            "DELETE FROM audit WHERE writer = x'\(id)'", "DELETE FROM audit_link WHERE writer = x'\(id)'",
            "DELETE FROM audit_writer WHERE id = x'\(id)'")
        let found = try fixture.verify(heads: heads).findings
        #expect(found.map(\.kind) == [.truncated])
        #expect(found.first?.writer == heads[0].writer)
        let forged = try #require(AuditHead(line: heads[1].line.replacing("\"sequence\":", with: "\"sequence\":9")))
        #expect(try fixture.verify(heads: [forged]).findings.map(\.kind) == [.head])
    }

    @Test(arguments: engines) func wordsOfADeletedUserMayBeMissing(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        let user = TestScript.fresh()
        _ = try store.runBlocking(AuditFixture.script(user: user))
        try fixture.forge("DELETE FROM audit_detail")
        #expect(try fixture.verify().findings.map(\.kind) == [.detail])
        _ = try store.runBlocking(AuditFixture.script(event: "user.forgotten", user: user, note: nil))
        let check = try fixture.verify()
        #expect(check.findings == [])
        #expect(check.deletedDetails == 1)
    }
}
