import Domain
import GSM
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// Text messages are counted when they begin: exactly, whatever the number of relays.
@Suite(.mayBlock) struct SMSBudgetTests {
    private static let now = Timestamp(seconds: 1_800_000_000)
    private static let number = "+4915112345678"

    private static let insertMessage = Statement(
        """
        INSERT INTO outbox (id, kind, attempts) SELECT :message, 'sms', 0 /*M! FROM DUAL */ WHERE \(SMSBudget.hasRoom)
        """)
    private static let begun = Statement("SELECT count(*) AS messages FROM outbox")
    private static let isBegun = Statement("SELECT count(*) AS count FROM outbox WHERE id = :message")
    private static let tally = Statement("SELECT messages FROM sms_usage WHERE period = :period AND scope = :scope")

    /// Begins a message as a verb does. Returns false if a limit was reached.
    @discardableResult
    static func begin(_ message: Int, _ charge: SMSCharge, on store: Store) async throws -> Bool {
        let id: OutboxEntryID = Sample.id(message)
        let rows = try await store.run(
            Script(
                "begin",
                writes: [
                    SMSBudget.hold(charge),
                    insertMessage.bound(["message": .id(id)], lists: SMSBudget.lists(charge)),
                    SMSBudget.count(charge, message: id),
                ], reads: [isBegun(message: .id(id))]))
        return try rows.row(0).integer("count") == 1
    }

    private static func charge(
        _ limits: SMSLimits, user: Int, to number: String = number, at moment: Timestamp = now
    ) throws -> SMSCharge { try #require(limits.charge(user: Sample.id(user), to: number, at: moment)) }

    @Test(arguments: Engine.allCases) func eachSMSLimitHolds(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        var limits = SMSLimits(userHour: 2, userDay: 3, prefixHour: 4, prefixDay: 5, day: 6)
        limits.counted = [try #require(NumberPrefix("+4930"))]
        let hour = Duration.seconds(3600)
        /// User, number, time, and whether the limits allow the message.
        let course: [(user: Int, number: String, after: Duration, isBegun: Bool)] = [
            (1, Self.number, .zero, true), (1, Self.number, .zero, true),
            // Limited by the user's hour.
            (1, Self.number, .zero, false), (2, Self.number, .zero, true),
            // In another hour, limited by the user's day.
            (1, Self.number, hour, true), (1, Self.number, hour, false),
            (3, Self.number, hour, true), (4, "+43512123456", hour, true),
            // Limited by the day of the country, then by the day of all.
            (5, Self.number, hour, false), (6, "+4930123456", hour, false),
            // The next day.
            (1, Self.number, hour * 24, true), (6, "+4930123456", hour * 24, true),
        ]
        for (message, row) in course.enumerated() {
            let charge = try Self.charge(limits, user: row.user, to: row.number, at: Self.now + row.after)
            #expect(try await Self.begin(message, charge, on: store) == row.isBegun, "row \(message)")
        }
        // Refused messages are not counted.
        let today = SQLValue.text(UsageDay(Self.now).text)
        let rows = try await store.run(
            Script("tally", reads: ["", "+49", "+43", "+4930"].map { Self.tally(period: today, scope: .text($0)) }))
        #expect(try rows.map { try $0.first?.integer("messages") } == [6, 5, 1, 0])
    }

    @Test(arguments: Engine.allCases) func hourlyCountryLimitHolds(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        let limits = SMSLimits(prefixHour: 1)
        #expect(try await Self.begin(1, Self.charge(limits, user: 1), on: store))
        #expect(try await !Self.begin(2, Self.charge(limits, user: 2), on: store))
        #expect(try await Self.begin(3, Self.charge(limits, user: 2, to: "+12025550123"), on: store))
    }

    @Test func twoRelaysNeverExceedTheSMSLimit() async throws {
        let database = try Engine.mariadb.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let stores = [try database.open(), try database.open()]
        defer { for store in stores { store.close() } }
        let limits = SMSLimits(userHour: 5, userDay: 100, day: 12)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for message in 0..<60 {
                let charge = try Self.charge(limits, user: message % 3)
                group.addTask { try await Self.begin(message, charge, on: stores[message % 2]) }
            }
            try await group.waitForAll()
        }
        let rows = try await stores[0].run(
            Script(
                "count",
                reads: [Self.begun()]
                    + ["", "+49"].map { Self.tally(period: .text(UsageDay(Self.now).text), scope: .text($0)) }))
        #expect(try rows.map { try $0[0].integer("messages") } == [12, 12, 12])
    }

    @Test(arguments: Engine.allCases) func dailySMSUsageIsReported(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        let (german, american) = (NumberPrefix.country(of: "+49"), NumberPrefix.country(of: "+1"))
        for user in 1...3 {
            try await Self.begin(user, Self.charge(SMSLimits(), user: user), on: store)
        }
        try await store.addUsage(SMSUsage(Sample.id(101), at: Self.now, prefix: german, parts: 2, cost: 150_000))
        try await store.addUsage(SMSUsage(Sample.id(102), at: Self.now, prefix: german, parts: 1, cost: 75_000))
        // Sent on another day: counted on the day on which it began.
        try await store.addUsage(SMSUsage(Sample.id(103), at: Self.now, prefix: american, parts: 1, cost: 10_000))
        let account = try await store.run(SMSUsageReport.query(of: Self.now))
        #expect(account.total == .init(prefix: "", messages: 3, sent: 3, parts: 4, cost: 235_000))
        #expect(
            account.prefixes == [
                .init(prefix: "+49", messages: 3, sent: 2, parts: 3, cost: 225_000),
                .init(prefix: "+1", messages: 0, sent: 1, parts: 1, cost: 10_000),
            ])
        let tomorrow = try await store.run(SMSUsageReport.query(of: Self.now + .seconds(86_400)))
        #expect(tomorrow.prefixes.isEmpty && tomorrow.total.messages == 0)

        // Counts by day stay; counts by user and by hour are deleted.
        _ = try await store.drop(ExpiredRows(.smsUsage, before: Self.now + .seconds(86_400)), by: Sample.id(1))
        #expect(try await store.run(SMSUsageReport.query(of: Self.now)) == account)
        let left = try await store.run(Script("left", reads: [Self.all()]))
        #expect(try left.row(0).integer("count") == 3)
    }

    private static let all = Statement("SELECT count(*) AS count FROM sms_usage")
}
