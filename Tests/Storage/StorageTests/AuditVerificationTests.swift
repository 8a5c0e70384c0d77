import Bytes
import Glibc
import TestSupport
import Testing
import World

@testable import Storage

/// Changes of the audit by somebody who can write to the store: each one is found and named.
///
/// With `TWOEFAY_AUDIT_ROWS`, `TWOEFAY_AUDIT_PLACES` and `TWOEFAY_AUDIT_TRUNCATIONS` the tests use other numbers
/// (docs/operators/audit.md has a command).
@Suite(.timeLimit(.minutes(60)), .mayBlock) struct AuditVerificationTests {
    static let engines = [Engine.file, .mariadb]
    private static let count = number("TWOEFAY_AUDIT_ROWS", 2_000)
    private static let places = number("TWOEFAY_AUDIT_PLACES", 20)
    private static let truncations = number("TWOEFAY_AUDIT_TRUNCATIONS", 3)

    private static func number(_ name: String, _ normal: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? normal
    }

    /// Fills the audit through two programs. The first one makes small links, so that the places of
    /// links, of which none is beside another one, are as many as those of rows.
    private static func filled(_ engine: Engine) throws -> AuditFixture {
        let fixture = try AuditFixture(engine)
        for batch in [4, 128] {
            let store = try fixture.open(batch: batch)
            defer { store.close() }
            for start in stride(from: 0, to: count / 2, by: 10_000) {
                try AuditFixture.write(min(10_000, count / 2 - start), to: store)
            }
        }
        return fixture
    }

    private static let other = "x'" + String(repeating: "77", count: 16) + "'"
    private static let digest = "x'" + String(repeating: "77", count: 32) + "'"

    /// The changes of a row.
    private static let rowChanges = [
        ("id", "-id"), ("at", "'2020-01-01 00:00:00.000'"), ("event", "'other'"), ("website_id", other),
        ("user_id", other), ("challenge_id", other), ("device_id", other), ("outcome", "'8'"), ("outcome", "NULL"),
        ("proof", "'code'"), ("actor", "'nobody'"), ("request", "'1'"), ("detail", "NULL"), ("detail", digest),
        ("writer", other), ("writer", "NULL"), ("link", "link + 1"),
    ]

    /// The numbers of places that are changed at once. Each place is named, and nothing else.
    private static var numbersOfPlaces: [Int] { [1, places] }

    /// Returns the rows at random places, by their operations.
    private static func rows(_ number: Int, _ fixture: AuditFixture) throws -> [(id: Int64, operation: [UInt8])] {
        let ids = Set((1...Int64(count)).shuffled().prefix(number)).map { "\($0)" }.joined(separator: ", ")
        return try fixture.rows("SELECT id, operation FROM audit WHERE id IN (\(ids))").map {
            (try $0.integer("id"), try $0.blob("operation"))
        }
    }

    private static func areRows(_ operations: [[UInt8]]) -> String {
        "operation IN (\(operations.map { "x'\(Hex.encode($0))'" }.joined(separator: ", ")))"
    }

    @Test(arguments: engines) func everyChangedRowIsNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        #expect(try fixture.verify().findings == [])
        for (column, value) in Self.rowChanges {
            for number in Self.numbersOfPlaces {
                let operations = try Self.rows(number, fixture).map(\.operation)
                let areRows = Self.areRows(operations)
                try fixture.changing(
                    ["audit"], where: areRows, ["UPDATE audit SET \(column) = \(value) WHERE \(areRows)"]
                ) {
                    let found = try fixture.verify().findings
                    #expect(found.allSatisfy { $0.kind == .changed }, "\(column) = \(value)")
                    #expect(found.count == number, "\(column) = \(value)")
                    #expect(Set(found.compactMap(\.operation)) == Set(operations), "\(column) = \(value)")
                }
            }
        }
        #expect(try fixture.verify().findings == [])
    }

    @Test(arguments: engines) func removedAndInsertedRowsAreNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        for number in Self.numbersOfPlaces {
            let rows = try Self.rows(number, fixture)
            let operations = rows.map(\.operation)
            let areRows = Self.areRows(operations)
            try fixture.changing(["audit"], where: areRows, ["DELETE FROM audit WHERE \(areRows)"]) {
                let found = try fixture.verify().findings
                #expect(found.allSatisfy { $0.kind == .removed } && found.count == number)
                #expect(Set(found.compactMap(\.operation)) == Set(operations))
            }
            // Another row stands under the number of each.
            let others = rows.map { _ in TestScript.fresh() }
            let changes = zip(rows, others).map {
                "UPDATE audit SET operation = x'\(Hex.encode($1))' WHERE id = \($0.id)"
            }
            try fixture.changing(["audit"], where: areRows, changes) {
                let found = try fixture.verify().findings
                #expect(found.count == 2 * number)
                let inserted = found.filter { $0.kind == .inserted }
                #expect(Set(inserted.compactMap(\.id)) == Set(rows.map(\.id)) && inserted.count == number)
                let removed = found.filter { $0.kind == .removed }
                #expect(Set(removed.compactMap(\.operation)) == Set(operations) && removed.count == number)
                try fixture.forge("DELETE FROM audit WHERE \(Self.areRows(others))")
            }
        }
        #expect(try fixture.verify().findings == [])
    }

    /// Two rows change places: their numbers, by which the order of changes is known.
    @Test(arguments: engines) func swappedRowsAreNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let rows = try Self.rows(2, fixture)
        func swap() throws {
            try fixture.forge(
                "UPDATE audit SET id = -1 WHERE id = \(rows[0].id)",
                "UPDATE audit SET id = \(rows[0].id) WHERE id = \(rows[1].id)",
                "UPDATE audit SET id = \(rows[1].id) WHERE id = -1")
        }
        try swap()
        let found = try fixture.verify().findings
        #expect(found.map(\.kind) == [.changed, .changed])
        #expect(Set(found.compactMap(\.operation)) == Set(rows.map(\.operation)))
        try swap()
        #expect(try fixture.verify().findings == [])
    }

    private struct Link: Hashable {
        let writer: [UInt8]
        let sequence: Int64
    }

    /// Returns links at random places. None is beside another one, and none is the last one of a chain,
    /// which needs the heads.
    private static func links(_ number: Int, _ fixture: AuditFixture) throws -> [Link] {
        let all = try fixture.rows("SELECT writer, sequence FROM audit_link ORDER BY writer, sequence").map {
            Link(writer: try $0.blob("writer"), sequence: try $0.integer("sequence"))
        }
        var chosen: Set<Link> = []
        for (link, next) in zip(all, all.dropFirst()).shuffled() where chosen.count < number {
            let beside = [-1, 1].map { Link(writer: link.writer, sequence: link.sequence + $0) }
            if link.writer == next.writer, chosen.isDisjoint(with: beside) { chosen.insert(link) }
        }
        return Array(chosen)
    }

    private static func links(_ found: [AuditFinding]) -> [Link] {
        found.filter { $0.kind == .link }.compactMap { finding in
            finding.writer.flatMap { writer in finding.link.map { Link(writer: writer, sequence: $0) } }
        }
    }

    @Test(arguments: engines) func changedLinksAreNamed(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let twice = engine == .file ? "x''" : "concat(hash, hash)"
        let changes = [
            "UPDATE audit_link SET at = '2020-01-01 00:00:00.000' WHERE ",
            "UPDATE audit_link SET former = \(Self.digest) WHERE ",
            "UPDATE audit_link SET hash = \(Self.digest) WHERE ",
            "UPDATE audit_link SET signature = \(twice) WHERE ", "UPDATE audit_link SET entries = x'' WHERE ",
            "UPDATE audit_link SET entries = x'00' WHERE ", "DELETE FROM audit_link WHERE ",
            "UPDATE audit_link SET sequence = sequence + 1000000 WHERE ",
        ]
        for change in changes {
            for number in Self.numbersOfPlaces {
                let links = try Self.links(number, fixture)
                func are(_ beyond: Int64) -> String {
                    Dictionary(grouping: links, by: \.writer).map { writer, links in
                        let numbers = links.map { "\($0.sequence + beyond)" }.joined(separator: ", ")
                        return "(writer = x'\(Hex.encode(writer))' AND sequence IN (\(numbers)))"
                    }.joined(separator: " OR ")
                }
                let rows = are(0).replacing("sequence", with: "link")
                try fixture.changing(["audit_link"], where: are(0), [change + "(\(are(0)))"]) {
                    let found = try fixture.verify().findings
                    // The moved link is named at its new place, too.
                    let moved = change.contains("1000000") ? 2 : 1
                    let named = Self.links(found).filter { $0.sequence < 1_000_000 }
                    #expect(Set(named) == Set(links), "\(change)")
                    #expect(Self.links(found).count == moved * number, "\(change)")
                    // No link proves the rows of these links any more.
                    let unproven = try fixture.rows("SELECT id FROM audit WHERE \(rows)").map { try $0.integer("id") }
                    let inserted = found.filter { $0.kind == .inserted }
                    #expect(Set(inserted.compactMap(\.id)) == Set(unproven), "\(change)")
                    #expect(inserted.count == unproven.count && found.count == inserted.count + moved * number)
                    if change.contains("1000000") {
                        try fixture.forge("DELETE FROM audit_link WHERE \(are(1_000_000))")
                    }
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
                let found = try fixture.verify().findings
                #expect(found.map(\.kind) == [.writer], "\(change)")
                #expect(found.first?.writer == writer)
            }
        }
        try fixture.changing(["audit_writer"], where: isWriter, ["DELETE FROM audit_writer WHERE \(isWriter)"]) {
            let found = try fixture.verify().findings
            #expect(found.map(\.kind) == [.writer])
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

    /// The end of a chain is deleted with its rows, further and further. Only the heads show it.
    @Test(arguments: engines) func truncationNeedsTheHeads(_ engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let heads = try fixture.heads()
        #expect(heads.count == 2)
        #expect(heads.map { AuditHead(line: $0.line) } == heads)
        var shortened: Set<[UInt8]> = []
        for head in heads {
            shortened.insert(head.writer)
            let writer = "writer = x'\(Hex.encode(head.writer))'"
            let random = (0..<Self.truncations).map { _ in Int64.random(in: 0..<head.sequence) }
            for last in Set(random + [0, 1, head.sequence - 1]).sorted(by: >) {
                try fixture.forge(
                    "DELETE FROM audit WHERE \(writer) AND link > \(last)",
                    "DELETE FROM audit_link WHERE \(writer) AND sequence > \(last)")
                let found = try fixture.verify(heads: heads).findings
                #expect(found.allSatisfy { $0.kind == .truncated })
                #expect(Set(found.compactMap(\.writer)) == shortened && found.count == shortened.count)
                #expect(found.contains { $0.text == "the links \(last + 1) to \(head.sequence) are missing" })
                #expect(try fixture.verify().findings == [])
            }
        }
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
