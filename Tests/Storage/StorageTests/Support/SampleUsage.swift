import Domain

@testable import Relay
@testable import Storage

extension Sample {
    /// The tallies of a text message to a user, with those of the website.
    static func charge(_ user: UserID) -> SMSCharge? {
        SMSLimits().charge(user: user, to: "+4366012345678", at: now)?
            .also(counting: website, within: WebsiteLimits(), at: now)
    }

    /// Writes and reads what websites use, as relays and operators do.
    static func runUsage(on store: Store) async throws {
        let day = UsageDay(now)
        let row = WebsiteUsageRow(website: website, day: day, counts: UsageCounts(logins: 1), users: 400)
        try await store.record([row], by: relay)
        _ = try await store.usage(of: [website], on: day, withEarlierDays: true, except: relay)
        _ = try await store.run(WebsiteUsageReport.query(of: "shop", in: day.month))
    }
}
