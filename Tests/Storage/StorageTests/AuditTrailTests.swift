import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The pages of a search in the audit.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditTrailTests {
    static let engines = [Engine.file, .mariadb]
    private static let user: [UInt8] = Array(repeating: 7, count: 16)
    private static let rows = AuditTrail.pageSize + 5

    /// An audit with a page of rows and some more. The last one of them is planted: it has the greatest
    /// number that there is. The later half has a later time.
    private static func filled(_ engine: Engine) throws -> AuditFixture {
        let fixture = try AuditFixture(engine)
        let store = try fixture.open()
        defer { store.close() }
        let scripts = (0..<rows - 1).map { number in
            let operation = TestScript.fresh()
            let at = Sample.now + .seconds(number < rows / 2 ? 0 : 60)
            return Script(
                "test", operation: operation,
                writes: [
                    AuditFixture.insert(
                        operation: .blob(operation), now: .timestamp(at), event: .text("test"), user: .blob(user),
                        note: .null, changes: .null)
                ])
        }
        _ = try store.runBlocking(scripts)
        try fixture.forge(
            """
            INSERT INTO audit (id, operation, at, event, user_id)
            SELECT \(Int64.max), x'\(String(repeating: "ff", count: 16))', max(at), 'planted', max(user_id) FROM audit
            """)
        return fixture
    }

    /// Reads all pages, and returns the ids and the number of pages.
    private static func pages(_ filter: AuditTrail.Filter, _ store: Store) throws -> (ids: [Int64], count: Int) {
        var (ids, count, position) = ([Int64](), 0, AuditTrail.Position?.none)
        repeat {
            let page = try store.runBlocking(AuditTrail.page(filter, after: position))
            ids += page.events.map(\.id)
            position = page.next
            count += 1
            // Without an end, the walk would be found here, and not after hours.
            try #require(count <= 10)
        } while position != nil
        return (ids, count)
    }

    @Test(arguments: engines) func plantedNumberCostsNoMoreThanAnother(engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        var filter = AuditTrail.Filter()
        let all = try Self.pages(filter, store)
        #expect(all.count == 2)
        #expect(all.ids.count == Self.rows && all.ids == all.ids.sorted() && all.ids.last == .max)
        // A search since a time, and a search for a user, walk other indexes to the same rows.
        filter.since = Sample.now
        #expect(try Self.pages(filter, store) == all)
        filter.user = UserID(Self.user)
        #expect(try Self.pages(filter, store) == all)
        filter.since = nil
        #expect(try Self.pages(filter, store) == all)
        filter.event = "planted"
        #expect(try Self.pages(filter, store) == ([.max], 2))
        filter = AuditTrail.Filter()
        filter.challenge = ChallengeID(Self.user)
        #expect(try Self.pages(filter, store) == ([], 2))
        filter = AuditTrail.Filter()
        filter.request = "none"
        #expect(try Self.pages(filter, store) == ([], 2))
        let newest = try store.runBlocking(AuditTrail.newest(3)).map(\.id)
        #expect(newest == Array(all.ids.suffix(3)))
        #expect(try store.runBlocking(AuditTrail.newest(1_000)).count == 1_000)
    }

    /// A search since a time does not look at the rows before it.
    @Test(arguments: engines) func searchSinceATimeBeginsThere(engine: Engine) throws {
        let fixture = try Self.filled(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        var filter = AuditTrail.Filter()
        filter.since = Sample.now + .seconds(1)
        let later = try Self.pages(filter, store)
        #expect(later.count == 1 && later.ids.count == Self.rows - Self.rows / 2)
        filter.since = nil
        filter.until = Sample.now + .seconds(1)
        #expect(try Self.pages(filter, store).ids.count == Self.rows / 2)
        filter.since = Sample.now
        let earlier = try Self.pages(filter, store)
        #expect(earlier.count == 1 && earlier.ids.count == Self.rows / 2)
        filter.since = Sample.now + .seconds(61)
        filter.until = nil
        #expect(try Self.pages(filter, store) == ([], 1))
    }

    @Test(arguments: engines) func emptyAuditHasOnePage(engine: Engine) throws {
        let fixture = try AuditFixture(engine)
        defer { fixture.close() }
        let store = try fixture.open()
        defer { store.close() }
        #expect(try Self.pages(AuditTrail.Filter(), store) == ([], 1))
        #expect(try store.runBlocking(AuditTrail.newest(5)).isEmpty)
    }
}
