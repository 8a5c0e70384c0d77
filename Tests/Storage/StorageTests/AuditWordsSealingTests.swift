import Bytes
import Crypto
import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The words of audit rows under `seal: personal`.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditWordsSealingTests {
    static let engines = [Engine.file, .mariadb]
    private static let allWords = "SELECT operation, salt, note, changes, reason FROM audit_detail ORDER BY operation"

    private static func personal(_ key: UInt8 = 1, seals: Bool = true) throws -> PersonalSealer {
        PersonalSealer(try Sealer(keys: [sealing(key)]), seals: seals)
    }

    private static func sealing(_ key: UInt8) -> Sealer.Key {
        Sealer.Key(id: "key-\(key)", key: Secret([UInt8](repeating: key, count: 32)))
    }

    /// A row with every kind of words, and signs that JSON and base64 escape.
    private static func script(_ operation: [UInt8] = TestScript.fresh(), user: [UInt8]? = nil) -> Script {
        Script(
            "test", operation: operation,
            writes: [
                AuditFixture.insert(
                    operation: .blob(operation), now: .timestamp(Sample.now), event: .text("test"), user: .blob(user),
                    note: .text("note: \"Ada\" \u{1F600}\u{1}\u{7f}"), changes: .text(#"{"name":["Ada","Eve"]}"#))
            ])
    }

    private static func shows(_ fixture: AuditFixture, _ personal: PersonalSealer?) throws -> [AuditWords] {
        let store = try fixture.open(personal: personal)
        defer { store.close() }
        return try store.runBlocking(AuditTrail.page(AuditTrail.Filter(), after: nil)).events.map {
            AuditWords(note: $0.note, changes: $0.changes, reason: $0.reason)
        }
    }

    /// Whether a copy of the store shows a word.
    private static func isInClear(_ fixture: AuditFixture) throws -> [Bool] {
        try fixture.rows(allWords).map { row in
            let columns: [SQLName] = ["note", "changes", "reason"]
            let words = try columns.compactMap { try row.optionalText($0) }
            return words.contains { $0.contains("Ada") || $0.contains("4711") }
        }
    }

    /// Rewrites all rows, as a relay does after a change of the setting.
    private static func rewrite(
        _ fixture: AuditFixture, _ personal: PersonalSealer
    ) async throws -> PersonalSealingRun {
        let store = try fixture.open(personal: personal)
        defer { store.close() }
        try await store.checkPersonalValuesAgain()
        while try await store.sealSome(with: personal, by: Sample.relay, at: Sample.now) != nil {}
        return try #require(try await store.run(PersonalSealingRuns.last))
    }

    private static func filled(_ engine: Engine, _ personal: PersonalSealer) async throws -> AuditFixture {
        let fixture = try AuditFixture(engine)
        let store = try fixture.open("tool", reason: "ticket 4711", personal: personal)
        defer { store.close() }
        try await AuditFixture.addRelay(to: store, at: Sample.now)
        for _ in 0..<3 { _ = try await store.run(script()) }
        return fixture
    }

    @Test(arguments: engines) func sealedWordsAreShownWithTheKeyAlone(engine: Engine) async throws {
        let personal = try Self.personal()
        let fixture = try await Self.filled(engine, personal)
        defer { fixture.close() }
        #expect(try Self.isInClear(fixture) == [false, false, false])
        // Neither the kinds of words nor equal ones can be told.
        let rows = try fixture.rows(Self.allWords)
        #expect(try rows.allSatisfy { try $0.isNull("note") && $0.isNull("reason") })
        #expect(Set(try rows.map { try $0.text("changes") }).count == 3)
        let wanted = AuditWords(
            note: "note: \"Ada\" \u{1F600}\u{1}\u{7f}", changes: #"{"name":["Ada","Eve"]}"#, reason: "ticket 4711")
        #expect(try Self.shows(fixture, personal) == [wanted, wanted, wanted])
        for other in [nil, try Self.personal(2)] {
            let shown = try Self.shows(fixture, other)
            #expect(shown.allSatisfy { $0.note == nil && $0.changes?.hasPrefix("sealed:key-1:") == true })
        }
    }

    /// The chain is over the words in the clear. Without their key, the check finds everything else.
    @Test(arguments: engines) func sealedAuditIsChecked(engine: Engine) async throws {
        let personal = try Self.personal()
        let fixture = try await Self.filled(engine, personal)
        defer { fixture.close() }
        #expect(try fixture.verify(personal: personal).findings == [])
        let unread = try fixture.verify(personal: try Self.personal(2))
        #expect(unread.findings.map(\.kind) == [.detail, .detail, .detail])
        let lacking = "under the key key-1, which this program does not have"
        #expect(unread.findings.allSatisfy { $0.text.contains(lacking) })
        #expect(unread.rows == 3)
        try fixture.forge("UPDATE audit SET event = 'other' WHERE id = 2")
        #expect(try fixture.verify().findings.map(\.kind) == [.detail, .changed, .detail])
    }

    @Test(arguments: engines) func changedSealedWordsAreNamed(engine: Engine) async throws {
        let personal = try Self.personal()
        let fixture = try await Self.filled(engine, personal)
        defer { fixture.close() }
        let operations = try fixture.rows("SELECT lower(hex(operation)) AS o FROM audit ORDER BY id").map {
            try $0.text("o")
        }
        let first = "operation = x'\(operations[0])'"
        let second = "operation = x'\(operations[1])'"
        let other = "(SELECT o.changes FROM (SELECT changes FROM audit_detail WHERE \(second)) o)"
        let changes = [
            // A note beside the seal, the words of another row, a seal that is cut, and words in the clear.
            "note = 'planted'", "reason = 'planted'", "changes = \(other)", "changes = substr(changes, 1, 60)",
            "changes = 'sealed:key-1:'", "changes = 'sealed:'", "changes = 'planted'", "changes = NULL",
        ]
        // SQLite stores values of any type in any column.
        let types = ["note = x'706c'", "reason = x'00'", "changes = x'00'", "salt = 'text'"]
        for change in changes + (engine == .file ? types : []) {
            let statement = "UPDATE audit_detail SET \(change) WHERE \(first)"
            try fixture.changing(["audit_detail"], where: first, [statement]) {
                let check = try fixture.verify(personal: personal)
                #expect(check.findings.map(\.kind) == [.detail], "\(change)")
                #expect(check.findings.first?.id == 1, "\(change)")
            }
        }
        #expect(try fixture.verify(personal: personal).findings == [])
    }

    @Test(arguments: engines) func switchRewritesWordsBothWays(engine: Engine) async throws {
        let fixture = try await Self.filled(engine, try Self.personal(seals: false))
        defer { fixture.close() }
        let before = try fixture.rows(Self.allWords).map { row in try (0..<row.count).map { try row.value(at: $0) } }
        #expect(try Self.isInClear(fixture) == [true, true, true])
        for seals in [true, false] {
            let personal = try Self.personal(seals: seals)
            let run = try await Self.rewrite(fixture, personal)
            #expect(run.changed == 3 && run.stuck == 0 && run.endedAt != nil)
            #expect(try Self.isInClear(fixture).allSatisfy { $0 == !seals })
            #expect(try fixture.verify(personal: personal).findings == [])
            // A second run finds nothing to do.
            #expect(try await Self.rewrite(fixture, personal).changed == 0)
        }
        let after = try fixture.rows(Self.allWords).map { row in try (0..<row.count).map { try row.value(at: $0) } }
        #expect(after == before)
    }

    @Test(arguments: engines) func wordsThatDoNotFitTheirRowKeepTheirForm(engine: Engine) async throws {
        let fixture = try await Self.filled(engine, try Self.personal(seals: false))
        defer { fixture.close() }
        try fixture.forge(
            "UPDATE audit_detail SET note = 'planted' WHERE operation = (SELECT operation FROM audit WHERE id = 1)")
        let run = try await Self.rewrite(fixture, try Self.personal())
        #expect(run.changed == 2 && run.stuck == 1 && run.endedAt != nil)
        #expect(try fixture.rows("SELECT note FROM audit_detail WHERE note = 'planted'").count == 1)
    }

    @Test(arguments: engines) func newMasterKeySealsWordsAgain(engine: Engine) async throws {
        let fixture = try await Self.filled(engine, try Self.personal())
        defer { fixture.close() }
        let both = PersonalSealer(try Sealer(keys: [Self.sealing(2), Self.sealing(1)]), seals: true)
        let store = try fixture.open(personal: both)
        defer { store.close() }
        #expect(try await store.run(KeyUse.personal(sealedBy: "key-1")) == 3)
        #expect(try await Self.rewrite(fixture, both).changed == 3)
        #expect(try await store.run(KeyUse.personal(sealedBy: "key-1")) == 0)
        #expect(try fixture.verify(personal: try Self.personal(2)).findings == [])
    }

    /// All that the store holds of one person has the words in the clear.
    @Test(arguments: engines) func exportOfAPersonHasTheWords(engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open("tool", reason: "ticket 4711", personal: try Self.personal())
        defer { store.close() }
        try await Sample.fill(store, at: fixture.database.url)
        let user: UserID = Sample.id(7)
        _ = try await store.run(Self.script(user: user.bytes))
        let exported = try await store.run(PersonalExport.all(of: user)).last { $0.table == "audit_detail" }
        let row = try #require(exported?.rows.last)
        #expect(row.map(\.name) == ["id", "note", "changes", "reason"])
        #expect(row.last?.value == .text("ticket 4711"))
    }
}
