import Domain
import GSM
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The rows of what websites use, on both stores.
@Suite(.mayBlock) struct WebsiteUsageRowsTests {
    private static let now = Timestamp(seconds: 1_800_000_000)
    private static let today = UsageDay(now)
    private static let yesterday = UsageDay(now - .seconds(86_400))
    private static let shop: WebsiteID = Sample.id(1)
    private static let bank: WebsiteID = Sample.id(2)

    private static func row(
        _ website: WebsiteID, _ day: UsageDay, _ logins: Int64, mails: Int64 = 0, users: Int64? = nil
    ) -> WebsiteUsageRow {
        WebsiteUsageRow(
            website: website, day: day, counts: UsageCounts(logins: logins, pushes: logins, mails: mails), users: users)
    }

    private func with(_ engine: Engine, _ body: (Store) async throws -> Void) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        try await body(store)
    }

    private static func add(_ website: WebsiteID, _ name: String, to store: Store) async throws {
        let insert = insertWebsite(
            website: .id(website), name: .text(name), now: .timestamp(now), operation: .id(website))
        _ = try await store.run(Script("add", writes: [insert]))
    }

    private static let insertWebsite = Statement(
        "INSERT INTO website VALUES (:website, :name, 'Site', 'active', '{}', NULL, :now, :operation, NULL)")

    @Test(arguments: Engine.allCases) func relaysSeeWhatOthersHaveCounted(_ engine: Engine) async throws {
        try await with(engine) { store in
            let relays: [RelayID] = [Sample.id(1), Sample.id(2)]
            try await store.record([Self.row(Self.shop, Self.yesterday, 7, mails: 2)], by: relays[0])
            try await store.record(
                [Self.row(Self.shop, Self.today, 1), Self.row(Self.bank, Self.today, 9)], by: relays[0])
            try await store.record([Self.row(Self.shop, Self.today, 3, mails: 1)], by: relays[1])
            // The whole count, not the difference.
            try await store.record([Self.row(Self.shop, Self.today, 4, mails: 1)], by: relays[1])

            let seen = try await store.usage(
                of: [Self.shop], on: Self.today, withEarlierDays: true, except: relays[0])
            #expect(Set(seen.keys) == [Self.shop])
            #expect(seen[Self.shop]?.others == UsageCounts(logins: 4, pushes: 4, mails: 1))
            // The earlier days are those of all relays.
            #expect(seen[Self.shop]?.earlier == UsageCounts(logins: 7, pushes: 7, mails: 2))
            let short = try await store.usage(
                of: [Self.shop], on: Self.today, withEarlierDays: false, except: relays[0])
            #expect(short[Self.shop]?.earlier == UsageCounts())
            #expect(short[Self.shop]?.others == UsageCounts(logins: 4, pushes: 4, mails: 1))
        }
    }

    @Test(arguments: Engine.allCases) func monthIsReportedWithItsTexts(_ engine: Engine) async throws {
        try await with(engine) { store in
            try await Self.add(Self.shop, "shop", to: store)
            try await Self.add(Self.bank, "bank", to: store)
            let relay: RelayID = Sample.id(1)
            try await store.record(
                [
                    Self.row(Self.shop, Self.yesterday, 7, mails: 2, users: 12),
                    Self.row(Self.shop, Self.today, 3, users: 11), Self.row(Self.bank, Self.today, 1),
                ], by: relay)
            // Without a count of users, the last one stays.
            try await store.record([Self.row(Self.shop, Self.today, 5)], by: relay)
            for (message, segments) in [(501, 2), (502, 1)] {
                try await store.addUsage(
                    SMSUsage(
                        Sample.id(message), at: Self.now, prefix: NumberPrefix.country(of: "+49"), website: Self.shop,
                        parts: segments, cost: 75_000))
            }
            let month = Self.today.month
            let lines = try await store.run(WebsiteUsageReport.query(of: nil, in: month))
            #expect(
                lines == [
                    .init(
                        website: "bank", month: month, logins: 1, pushes: 1, mails: 0, texts: 0, segments: 0,
                        textCost: 0,
                        users: nil),
                    .init(
                        website: "shop", month: month, logins: 12, pushes: 12, mails: 2, texts: 0, segments: 3,
                        textCost: 150_000, users: 12),
                ])
            #expect(try await store.run(WebsiteUsageReport.query(of: "shop", in: nil)) == [lines[1]])
            #expect(try await store.run(WebsiteUsageReport.query(of: nil, in: "2020-01")).isEmpty)
        }
    }

    /// A text message counts as one segment from its beginning, and as its segments when it was sent.
    @Test(arguments: Engine.allCases) func segmentsOfAWebsiteAreLimited(_ engine: Engine) async throws {
        try await with(engine) { store in
            var limits = WebsiteLimits()
            (limits[.textsDay], limits[.textsMonth]) = (4, 6)
            var number = 100
            func begin(_ website: WebsiteID, at moment: Timestamp = Self.now) async throws -> Bool {
                number += 1
                let plain = SMSLimits().charge(user: Sample.id(number), to: "+4915112345678", at: moment)
                let charge = try #require(plain).also(counting: website, within: limits, at: moment)
                return try await SMSBudgetTests.begin(number, charge, on: store)
            }
            func sent(_ message: Int, at moment: Timestamp = Self.now) async throws {
                try await store.addUsage(
                    SMSUsage(
                        Sample.id(message), at: moment, prefix: NumberPrefix.country(of: "+49"), website: Self.shop,
                        parts: 2, cost: 0))
            }
            #expect(try await begin(Self.shop))
            try await sent(101)
            #expect(try await begin(Self.shop))
            #expect(try await begin(Self.shop))
            // Two segments, and two messages that are under way.
            #expect(try await !begin(Self.shop))
            #expect(try await begin(Self.bank))
            let totals = try await store.run(WebsiteUsageRows.totals(of: nil, on: Self.today))
            #expect(totals[Self.shop]?.textsDay == 4 && totals[Self.shop]?.textsMonth == 4)
            #expect(totals[Self.bank]?.textsDay == 1)
            // On the next day, the month has room for two.
            let tomorrow = Self.now + .seconds(86_400)
            #expect(try await begin(Self.shop, at: tomorrow))
            try await sent(106, at: tomorrow)
            #expect(try await !begin(Self.shop, at: tomorrow))
            // Retention deletes no tally of a website that a limit still uses.
            _ = try await store.drop(ExpiredRows(.smsUsage, before: tomorrow + .seconds(86_400)), by: Sample.id(1))
            #expect(try await !begin(Self.shop, at: tomorrow))
        }
    }

    @Test(arguments: Engine.allCases) func oldRowsAreDeleted(_ engine: Engine) async throws {
        try await with(engine) { store in
            let relay: RelayID = Sample.id(1)
            _ = try await store.sendHeartbeat(relay, at: Self.now)
            try await store.record(
                [Self.row(Self.shop, Self.yesterday, 7), Self.row(Self.shop, Self.today, 1)], by: relay)
            let deleted = try await store.drop(ExpiredRows(.usage, before: Self.now), by: relay)
            #expect(deleted?.count == 1)
            let totals = try await store.run(WebsiteUsageRows.totals(of: nil, on: Self.today))
            #expect(totals[Self.shop]?.others.logins == 1 && totals[Self.shop]?.earlier == UsageCounts())
        }
    }
}
