import Bytes
import Crypto
import TestSupport
import Testing
import World

@testable import Storage

/// The heads that a relay exports from a store that somebody changes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditHeadFeedTests {
    static let engines = [Engine.file, .mariadb]
    private static let operation = "x'" + String(repeating: "55", count: 16) + "'"

    /// The result of one round.
    private struct Round {
        var heads: [AuditHead] = []
        var reasons: [String] = []
    }

    private static func round(_ feed: AuditHeadFeed) async throws -> Round {
        var round = Round()
        let faults = try await feed.round { heads in
            round.heads += heads
            return true
        }
        round.reasons = faults.map(\.reason)
        return round
    }

    /// A store with a relay that runs, a tool that has ended, and the feed of the relay.
    private static func filled(_ engine: Engine, _ time: TestTime) throws -> (AuditFixture, Store, AuditHead) {
        let fixture = try AuditFixture(engine)
        let tool = try fixture.open("tool", batch: 1)
        try AuditFixture.write(3, to: tool)
        let head = try #require(tool.auditHead)
        tool.close()
        let relay = try fixture.open(batch: 1)
        try AuditFixture.write(3, to: relay)
        return (fixture, relay, head)
    }

    @Test(arguments: engines) func eachNewHeadIsGivenOnce(_ engine: Engine) async throws {
        let time = TestTime()
        let (fixture, relay, tool) = try Self.filled(engine, time)
        defer { fixture.close() }
        defer { relay.close() }
        let feed = AuditHeadFeed(relay, time: time)
        let own = try #require(relay.auditHead)
        let first = try await Self.round(feed)
        #expect(Set(first.heads.map(\.line)) == [own.line, tool.line] && first.heads.count == 2)
        #expect(first.reasons == [])
        #expect(try await Self.round(feed).heads == [])
        // A program that begins is found by its rows.
        let other = try fixture.open("tool")
        try AuditFixture.write(1, to: other)
        let newest = try #require(other.auditHead)
        other.close()
        #expect(try await Self.round(feed).heads == [newest])
        feed.beginAgain()
        #expect(try await Self.round(feed).heads.count == 3)
        #expect(try fixture.verify(heads: first.heads + [newest]).findings == [])
    }

    @Test(arguments: engines) func headsThatWereNotWrittenAreGivenAgain(_ engine: Engine) async throws {
        let time = TestTime()
        let (fixture, relay, _) = try Self.filled(engine, time)
        defer { fixture.close() }
        defer { relay.close() }
        let feed = AuditHeadFeed(relay, time: time)
        _ = try await feed.round { _ in false }
        #expect(try await Self.round(feed).heads.count == 2)
        #expect(try await Self.round(feed).heads == [])
    }

    /// Each of these changes hid the head of a writer once. The other heads are still given.
    @Test(arguments: engines) func changesAreReportedOnce(_ engine: Engine) async throws {
        let (link, all) = ("writer = W AND sequence = 3", "writer = W")
        let changes = [
            ("DELETE FROM audit_writer WHERE id = W", "its chain is missing"),
            ("UPDATE audit_writer SET mac = NULL WHERE id = W", "no program has signed"),
            ("DELETE FROM audit_link WHERE \(link)", "its chain ended with link 3, and now with 2"),
            ("DELETE FROM audit_link WHERE \(all)", "its chain is missing"),
            ("UPDATE audit_link SET sequence = 9223372036854775807 WHERE \(link)", "its newest link is not genuine"),
            (
                "INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature) "
                    + "SELECT writer, 9223372036854775807, at, former, entries, hash, signature FROM audit_link WHERE \(link)",
                "its newest link is not genuine"
            ),
        ]
        let value = ("UPDATE audit_link SET at = x'00' WHERE \(link)", "its newest link is not genuine")
        for (change, reason) in changes + (engine == .file ? [value] : []) {
            let time = TestTime()
            let (fixture, relay, tool) = try Self.filled(engine, time)
            defer { fixture.close() }
            defer { relay.close() }
            let feed = AuditHeadFeed(relay, time: time)
            _ = try await Self.round(feed)
            try fixture.forge(change.replacing("= W", with: "= x'\(Hex.encode(tool.writer))'"))
            try AuditFixture.write(1, to: relay)
            time.advance(by: AuditHeadFeed.pause)
            let round = try await Self.round(feed)
            #expect(round.heads == [relay.auditHead].compactMap(\.self), "\(change)")
            #expect(round.reasons.contains { $0.hasPrefix(reason) }, "\(change)")
            time.advance(by: AuditHeadFeed.pause)
            #expect(try await Self.round(feed).reasons == [], "\(change)")
        }
    }

    /// A planted link is not exported, and the genuine one below it is.
    @Test(arguments: engines) func plantedLinkIsNotExported(_ engine: Engine) async throws {
        let time = TestTime()
        let (fixture, relay, tool) = try Self.filled(engine, time)
        defer { fixture.close() }
        defer { relay.close() }
        try fixture.forge(
            "INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature) "
                + "SELECT writer, 900, at, former, entries, hash, signature FROM audit_link "
                + "WHERE writer = x'\(Hex.encode(tool.writer))' AND sequence = 3")
        let round = try await Self.round(AuditHeadFeed(relay, time: time))
        #expect(round.heads.contains(tool))
        #expect(round.heads.allSatisfy { $0.sequence <= 3 })
        #expect(round.reasons == ["its newest link is not genuine"])
    }

    /// More links are planted than a search step by step reads.
    @Test(arguments: engines) func manyPlantedLinksHideNoHead(_ engine: Engine) async throws {
        let time = TestTime()
        let (fixture, relay, tool) = try Self.filled(engine, time)
        defer { fixture.close() }
        defer { relay.close() }
        let digits = (0..<10).map { "SELECT \($0) AS d" }.joined(separator: " UNION ALL ")
        try fixture.forge(
            "INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature) "
                + "SELECT l.writer, 900 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, l.at, l.former, l.entries, l.hash, "
                + "l.signature FROM audit_link l JOIN (\(digits)) a JOIN (\(digits)) b JOIN (\(digits)) c "
                + "JOIN (SELECT 0 AS d UNION ALL SELECT 1) e "
                + "WHERE l.writer = x'\(Hex.encode(tool.writer))' AND l.sequence = 3")
        let round = try await Self.round(AuditHeadFeed(relay, time: time))
        #expect(round.heads.contains(tool))
        #expect(round.heads.allSatisfy { $0.sequence <= 3 })
        #expect(round.reasons == ["its newest link is not genuine"])
    }

    /// Somebody gives a row a high number. MariaDB goes on after it. After the highest one, SQLite takes
    /// random ones. The heads of other programs are still given in the next round.
    @Test(arguments: engines) func highRowNumberDelaysNoHead(_ engine: Engine) async throws {
        let time = TestTime()
        let (fixture, relay, _) = try Self.filled(engine, time)
        defer { fixture.close() }
        defer { relay.close() }
        let feed = AuditHeadFeed(relay, time: time)
        #expect(try await Self.round(feed).reasons == [])
        // After the highest one, MariaDB would write no row at all.
        let number = engine == .mariadb ? Int64(1) << 40 : .max
        try fixture.forge("UPDATE audit SET id = \(number) WHERE id = 2")
        // Without proof of the number, this round would begin at it.
        #expect(try await Self.round(feed).reasons == ["no writer has signed the newest row"])
        let tool = try fixture.open("tool")
        try AuditFixture.write(1, to: tool)
        let newest = try #require(tool.auditHead)
        tool.close()
        let round = try await Self.round(feed)
        #expect(round.heads == [newest])
        #expect(round.reasons == [])
    }

    /// A row that names a genuine link is not proven by it.
    @Test(arguments: engines) func plantedRowOfAGenuineLinkProvesNoNumber(_ engine: Engine) async throws {
        let time = TestTime()
        let (fixture, relay, tool) = try Self.filled(engine, time)
        defer { fixture.close() }
        defer { relay.close() }
        let feed = AuditHeadFeed(relay, time: time)
        try fixture.forge(
            "INSERT INTO audit (id, operation, at, event, writer, link) SELECT 900000, \(Self.operation), at, event, "
                + "writer, link FROM audit WHERE writer = x'\(Hex.encode(tool.writer))' AND link = 3")
        #expect(try await Self.round(feed).reasons == ["no writer has signed the newest row"])
        // The next genuine row has a higher number, and is proven.
        try AuditFixture.write(1, to: relay)
        #expect(try await Self.round(feed).heads == [relay.auditHead].compactMap(\.self))
    }

    /// There are more writers than one statement reads.
    @Test(arguments: engines) func headsOfManyWritersAreGiven(_ engine: Engine) async throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let relay = try fixture.open()
        defer { relay.close() }
        let authenticator = try RowAuthenticator(keys: [AuditFixture.key])
        let writers = AuditHeadCandidate.pageSize + 3
        let session = try fixture.database.url.session(.writing)
        defer { session.close() }
        try session.begin(.writing)
        for _ in 0..<writers {
            let chain = AuditChain(AuditAuthor(program: "tool", host: "host"), time: SystemTime())
            let entry = AuditLink.Entry(operation: TestScript.fresh(), digest: AuditLink.start)
            let link = try chain.link([entry], at: try chain.next(on: session))
            _ = try session.run(chain.statements(link, authenticator))
        }
        try session.commit()
        let round = try await Self.round(AuditHeadFeed(relay, time: SystemTime()))
        #expect(round.heads.count == writers)
        #expect(Set(round.heads.map(\.writer)).count == writers)
        #expect(round.reasons == [])
    }
}
