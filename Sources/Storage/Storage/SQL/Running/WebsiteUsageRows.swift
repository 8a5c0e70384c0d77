import Domain
import Relay
import World

extension Store: WebsiteUsageStore {
    /// Each row is written as a whole, so a repetition changes nothing.
    public func record(_ usage: [WebsiteUsageRow], by relay: RelayID) async throws(StoreFailure) {
        let writes = usage.map { row in
            writeUsage(
                day: .text(row.day.text), website: .id(row.website), relay: .id(relay),
                logins: .integer(row.counts.logins), pushes: .integer(row.counts.pushes),
                mails: .integer(row.counts.mails), users: .integer(row.users))
        }
        try await run(Query(script: Script("usage", writes: writes)) { _ in () })
    }

    public func usage(
        of websites: [WebsiteID], on day: UsageDay, withEarlierDays isWholeMonth: Bool, except relay: RelayID
    ) async throws(StoreFailure) -> [WebsiteID: WebsiteUsageTotals] {
        let first = isWholeMonth ? nil : day
        return try await run(WebsiteUsageRows.totals(of: Set(websites), on: day, from: first, except: relay))
    }
}

/// Writes a row of usage. The users of a row are counted later than its first write.
private let writeUsage = Statement(
    """
    INSERT INTO website_usage (day, website_id, relay_id, logins, pushes, mails, users)
    VALUES (:day, :website, :relay, :logins, :pushes, :mails, :users)
    /*M! ON DUPLICATE KEY UPDATE logins = VALUES(logins), pushes = VALUES(pushes), mails = VALUES(mails),
    users = coalesce(VALUES(users), website_usage.users) */
    /*S! ON CONFLICT DO UPDATE SET logins = excluded.logins, pushes = excluded.pushes, mails = excluded.mails,
    users = coalesce(excluded.users, website_usage.users) */
    """)

/// The reads of what websites use now, by relays and by operators.
public enum WebsiteUsageRows {
    /// Returns the counts of websites.
    ///
    /// - Parameters:
    ///   - websites: the websites; nil for all.
    ///   - first: the first day; nil for that of the month.
    ///   - relay: a relay whose rows of the day are left out; nil for none.
    public static func totals(
        of websites: Set<WebsiteID>?, on day: UsageDay, from first: UsageDay? = nil, except relay: RelayID? = nil
    ) -> Query<[WebsiteID: WebsiteUsageTotals]> {
        let (today, month) = (SQLValue.text(day.text), SQLValue.text(day.month))
        let reads = [
            usageOfDays(
                firstDay: .text(first?.text ?? day.month + "-01"), lastDay: today,
                relay: relay.map { .id($0) } ?? .blob([])),
            textsOf(day: today, month: month),
        ]
        return Query(script: Script("usage", reads: reads)) { rows throws(StoreFailure) in
            var totals: [WebsiteID: WebsiteUsageTotals] = [:]
            for row in rows[0] {
                let website: WebsiteID = try row.id("website_id")
                guard websites?.contains(website) != false else { continue }
                let counts = UsageCounts(
                    logins: try row.integer("logins"), pushes: try row.integer("pushes"),
                    mails: try row.integer("mails"))
                if try row.text("day") == day.text {
                    totals[website, default: WebsiteUsageTotals()].others = counts
                } else {
                    let earlier = totals[website]?.earlier ?? UsageCounts()
                    totals[website, default: WebsiteUsageTotals()].earlier = earlier + counts
                }
            }
            for row in rows[1] {
                guard let website = WebsiteID(String(try row.text("scope").dropFirst())),
                    websites?.contains(website) != false
                else { continue }
                let used = try row.integer("used")
                if try row.text("period") == day.text {
                    totals[website, default: WebsiteUsageTotals()].textsDay = used
                } else {
                    totals[website, default: WebsiteUsageTotals()].textsMonth = used
                }
            }
            return totals
        }
    }
}

/// Reads the sums of each day of a month.
private let usageOfDays = Statement(
    """
    SELECT website_id, day, CAST(sum(logins) AS SIGNED) AS logins, CAST(sum(pushes) AS SIGNED) AS pushes,
    CAST(sum(mails) AS SIGNED) AS mails FROM website_usage
    WHERE day >= :firstDay AND day <= :lastDay AND NOT (day = :lastDay AND relay_id = :relay)
    GROUP BY day, website_id
    """)

/// Reads the segments of text messages. A message that no gateway has accepted yet counts as one.
private let textsOf = Statement(
    """
    SELECT period, scope, messages + segments - sent AS used FROM sms_usage
    WHERE period = :day AND scope >= 'w' AND scope < 'x'
    UNION ALL SELECT period, scope, messages + segments - sent AS used FROM sms_usage
    WHERE period = :month AND scope >= 'w' AND scope < 'x'
    """)
