import Bytes
import TestSupport
import Testing
import World

@testable import Storage

/// The chains of the audit, as the programs write them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditChainTests {
    static let engines = [Engine.file, .mariadb]

    /// Two relays and the tool write at the same time, each in its own chain.
    @Test(arguments: engines) func chainsOfSeveralProgramsAreRight(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let stores = [try fixture.open(), try fixture.open(), try fixture.open("tool")]
        defer { for store in stores { store.close() } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for store in stores {
                for _ in 0..<40 { group.addTask { _ = try await store.run(AuditFixture.script()) } }
            }
            try await group.waitForAll()
        }
        let check = try fixture.verify(heads: try fixture.heads())
        #expect(check.findings == [])
        #expect(check.rows == 120)
        #expect(check.writers == 3)
    }

    @Test(arguments: engines) func rowsOfOneTransactionShareALink(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        let scripts = [AuditFixture.script(), AuditFixture.script()]
        _ = try store.runBlocking(
            Script("both", writes: scripts.flatMap(\.writes)))
        let check = try fixture.verify()
        #expect(check.findings == [])
        #expect((check.rows, check.links) == (2, 1))
    }

    @Test(arguments: engines) func repeatedOperationIsInOneLink(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let operation = TestScript.fresh()
        for _ in 0..<2 {
            let store = try fixture.open()
            defer { store.close() }
            _ = try store.runBlocking([AuditFixture.script(operation), AuditFixture.script()])
        }
        let check = try fixture.verify()
        #expect(check.findings == [])
        #expect(check.rows == 3)
    }

    /// A writer whose transaction fails uses the number of its link again.
    @Test(arguments: engines) func rolledBackTransactionLeavesNoGap(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        try AuditFixture.write(3, to: store)
        let broken = Statement("INSERT INTO relay (id, beat, beat_at) VALUES (NULL, 0, NULL)")
        #expect(throws: (any Error).self) {
            _ = try store.runBlocking(Script("broken", writes: AuditFixture.script().writes + [broken()]))
        }
        try AuditFixture.write(3, to: store)
        let check = try fixture.verify()
        #expect(check.findings == [])
        #expect(check.rows == 6)
    }

    /// A writer does not live for ever, so that retention can delete its row.
    @Test(arguments: engines) func newWriterBeginsAfterALongTime(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let time = TestTime()
        let store = try fixture.open(at: time)
        defer { store.close() }
        try AuditFixture.write(1, to: store)
        time.advance(by: AuditChain.lifetime - .seconds(1))
        try AuditFixture.write(1, to: store)
        time.advance(by: .seconds(1))
        try AuditFixture.write(1, to: store)
        let check = try fixture.verify(heads: try fixture.heads())
        #expect(check.findings == [])
        #expect((check.rows, check.writers) == (3, 2))
    }

    /// A transaction writes words about a user and deletes the user, in either order.
    @Test(arguments: engines, [true, false])
    func wordsDoNotOutliveTheUserInOneTransaction(_ engine: Engine, isBefore: Bool) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open(reason: "left")
        defer { store.close() }
        let (user, other) = (TestScript.fresh(), TestScript.fresh())
        let deletion = AuditFixture.script(event: "user.forgotten", user: user, note: nil).writes
        let about = [AuditFixture.script(user: user), AuditFixture.script(user: other)].flatMap(\.writes)
        _ = try store.runBlocking(Script("both", writes: isBefore ? about + deletion : deletion + about))
        let words = try fixture.rows(
            "SELECT a.id FROM audit a JOIN audit_detail d ON d.operation = a.operation ORDER BY a.id")
        #expect(try words.map { try $0.integer("id") } == (isBefore ? [2, 3] : [1, 2, 3]))
        let check = try fixture.verify()
        #expect(check.findings == [])
        #expect(check.deletedDetails == (isBefore ? 1 : 0))
    }

    /// Somebody uses the next number of a running writer. The writer goes on in a new chain.
    @Test(arguments: engines) func plantedLinkStopsNoWriter(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        try AuditFixture.write(1, to: store)
        try fixture.forge(
            """
            INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature)
            SELECT writer, sequence + 1, at, former, entries, hash, signature FROM audit_link
            """)
        try AuditFixture.write(1, to: store)
        let check = try fixture.verify()
        #expect(check.findings.map(\.kind) == [.link])
        #expect(check.findings.first?.link == 2)
        #expect((check.rows, check.writers) == (2, 2))
    }

    /// After a change of the master key, and without the former one.
    @Test(arguments: engines) func chainOutlivesTheMasterKey(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        try AuditFixture.write(5, to: store)
        store.close()
        let next = RowAuthenticator.Key(id: "2", secret: Secret(utf8: "next"))
        let changed = try fixture.open(keys: [next, AuditFixture.key])
        #expect(try changed.signAgainBlocking() == 1)
        try AuditFixture.write(5, to: changed)
        changed.close()
        let check = try fixture.verify(keys: [next])
        #expect(check.findings == [])
        #expect(check.rows == 10)
        // Without the present key, nobody knows the two writers, and nothing else is named.
        #expect(try fixture.verify().findings.map(\.kind) == [.writer, .writer])
    }

    @Test(arguments: engines) func rowsNameActorAndReason(_ engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open("tool", reason: "ticket 4711")
        defer { store.close() }
        try AuditFixture.write(1, to: store, note: "the note")
        let row = try #require(try fixture.rows("SELECT actor, note, reason FROM AuditTrail").first)
        #expect(try row.text("actor") == "tool host")
        #expect(try row.text("note") == "the note")
        #expect(try row.text("reason") == "ticket 4711")
        #expect(try fixture.verify().findings == [])
    }
}

extension HarmedServerTests {
    struct AuditAfterLostCommitTests {
        /// The writer does not know whether its link was committed, and looks for it.
        @Test(arguments: [true, false]) func chainGoesOn(isCommitted: Bool) async throws {
            let server = try MariaDBServer.shared()
            let proxy = try CutProxy(to: server.port)
            defer { proxy.close() }
            let url = try StorageURL(server.url(try server.freshDatabase(), port: proxy.port))
            var options = StoreOptions.patient
            options.rows = try RowAuthenticator(keys: [AuditFixture.key])
            let store = try TestDatabase(url: url, migrations: Migration.all).open(options: options)
            defer { store.close() }
            for _ in 0..<3 {
                proxy.cutNextCommit(isCommitted ? .after : .before)
                _ = try await store.run(AuditFixture.script())
                _ = try await store.run(AuditFixture.script())
            }
            let check = try AuditVerification.run(store, at: SystemTime().now())
            #expect(check.findings == [])
            #expect((check.rows, check.writers) == (6, 1))
        }
    }
}
