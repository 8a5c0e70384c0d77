import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The order in which relays lease entries of the outbox: that of their due times.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct OutboxOrderTests {
    static let engines = [Engine.file, .mariadb]
    private static let size = Relay.leaseSize
    private static let own: OutboxEntryID = Sample.id(77_777)

    private static let insertUser = Statement(
        """
        INSERT INTO user (id, token, website_id, username, state, created_at, operation)
        VALUES (:user, :user, :website, 'ada', 'active', :now, :user)
        """)
    private static let insertEntry = Statement(
        """
        INSERT INTO outbox (id, kind, user_id, due_at, attempts) VALUES (:entry, 'push', :user, :dueAt, 0)
        """)

    /// Adds entries of the user of a website.
    private static func add(_ numbers: Range<Int>, of user: UserID, due: Timestamp, to store: Store) async throws {
        let writes = numbers.map { number in
            let entry: OutboxEntryID = number == 0 ? own : Sample.id(100_000 + number)
            return insertEntry(entry: .id(entry), user: .id(user), dueAt: .timestamp(due))
        }
        _ = try await store.run(Script("test", writes: writes))
    }

    private static func lease(_ number: Int, at now: Timestamp, _ store: Store) async throws -> [LeasedEntry] {
        let found = try await store.lease(
            OutboxLease(
                id: Sample.id(200_000 + number), relay: Sample.relay, now: now, leasedUntil: now + Relay.lease,
                messagesLeasedUntil: now + Relay.lease, limit: size))
        #expect(found.failed.isEmpty)
        return found.rows
    }

    /// A website has more due entries than ten leases take, and goes on adding some. The entry of another
    /// website waits for those that were due before it, and for no others: neither for newer ones, nor for
    /// the same ones again, when their first leases end before they are worked on.
    @Test(arguments: engines) func entryWaitsForThoseThatWereDueBeforeItAlone(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        let start = Sample.now
        try await AuditFixture.addRelay(to: store, at: start)
        let (flood, other): (UserID, UserID) = (Sample.id(11), Sample.id(12))
        for (user, website) in [(flood, 21), (other, 22)] {
            let website: WebsiteID = Sample.id(website)
            _ = try await store.run(
                Script(
                    "test",
                    writes: [Self.insertUser(user: .id(user), website: .id(website), now: .timestamp(start))]))
        }
        let older = 10 * Self.size + 1
        try await Self.add(1..<(older + 1), of: flood, due: start, to: store)
        try await Self.add(0..<1, of: other, due: start + .seconds(1), to: store)
        var now = start + .seconds(2)
        var places: [Int] = []
        for number in 1...12 {
            try await Self.add(
                (number * 10_000)..<(number * 10_000 + Self.size), of: flood, due: start + .seconds(2), to: store)
            // The first five leases end, and nothing of them is done.
            if number == 6 { now = now + Relay.lease }
            let rows = try await Self.lease(number, at: now, store)
            #expect(rows.count == Self.size)
            if let row = rows.first(where: { $0.id == Self.own }) {
                #expect(row.website == Sample.id(22))
                places.append(number)
            }
        }
        #expect(places == [11])
    }
}
