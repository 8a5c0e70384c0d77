import Domain
import Log
import World

/// The store port of what websites use.
public protocol WebsiteUsageStore: Sendable {
    /// Writes the counts of this relay, each as a whole.
    func record(_ usage: [WebsiteUsageRow], by relay: RelayID) async throws(StoreFailure)
    /// Returns what all others than this run of the relay have counted for some websites. Without
    /// the earlier days of the month, `earlier` is 0.
    func usage(
        of websites: [WebsiteID], on day: UsageDay, withEarlierDays: Bool, except relay: RelayID
    ) async throws(StoreFailure) -> [WebsiteID: WebsiteUsageTotals]
}

/// The counts of one website on one day, at one relay.
public struct WebsiteUsageRow: Sendable, Equatable {
    public let website: WebsiteID
    public let day: UsageDay
    public let counts: UsageCounts
    /// The users at the last count of that day; nil if this relay has not counted them.
    public let users: Int64?

    public init(website: WebsiteID, day: UsageDay, counts: UsageCounts, users: Int64?) {
        self.website = website
        self.day = day
        self.counts = counts
        self.users = users
    }
}

/// The counts of one website that others have written.
public struct WebsiteUsageTotals: Sendable, Equatable {
    /// The counts of today by other relays, and by earlier runs of this one.
    public var others = UsageCounts()
    /// The counts of the earlier days of this month.
    public var earlier = UsageCounts()
    /// The segments of text messages that were begun.
    public var textsDay: Int64 = 0
    public var textsMonth: Int64 = 0

    public init() {}
}

extension Relay {
    /// Writes what the websites have used, and reads what other relays have counted. The daemon's
    /// timer calls this every five seconds, and the daemon once more at its end. While nothing is
    /// used, the relay reads once a minute.
    public func recordUsage() async {
        await countUsersOfTheDay()
        let now = time.now()
        let (rows, websites, isWholeMonth) = usage.all(at: now) { records in
            (
                records.flatMap { $1.rows(of: $0) }, Array(records.keys),
                records.contains { !$1.knowsEarlierDays }
            )
        }
        guard !rows.isEmpty || usage.isReadDue(at: time.instant()), !websites.isEmpty else { return }
        do throws(StoreFailure) {
            if !rows.isEmpty { try await store.record(rows, by: id) }
            usage.all(at: now) { records in for row in rows { records[row.website]?.written(row) } }
            let day = UsageDay(now)
            let instant = time.instant()
            let totals = try await store.usage(
                of: websites, on: day, withEarlierDays: isWholeMonth, except: id)
            usage.all(at: now) { records in
                for website in websites {
                    records[website]?.learn(
                        totals[website] ?? WebsiteUsageTotals(), at: day, isWholeMonth, readAt: instant)
                }
            }
            usage.wasRead(at: time.instant())
        } catch {
            return log.warning("website.usage", [.reason: error.reason])
        }
        warn(at: now)
        metrics.websites.set(shown(at: now))
    }

    /// Counts the users of websites for the first time on a day.
    private func countUsersOfTheDay() async {
        let uncounted = usage.all(at: time.now()) { records in records.filter { $1.users == nil }.map(\.key) }
        for website in uncounted {
            guard let users = try? await store.countUsers(of: website, upTo: .max) else { return }
            usage.all(at: time.now()) { $0[website]?.users = Int64(users) }
        }
    }

    /// Warns of each limit of which four fifths are used, once in its day or month.
    private func warn(at now: Timestamp) {
        let near: [(website: String, limit: WebsiteLimit, used: Int64, most: Int)] = usage.all(at: now) { records in
            var near: [(website: String, limit: WebsiteLimit, used: Int64, most: Int)] = []
            for (website, record) in records {
                for limit in WebsiteLimit.allCases where limit != .loginsMinute {
                    guard let most = bound(limit, record.limits), let used = record.used(limit),
                        used * 5 >= Int64(most) * 4, records[website]?.mayWarn(of: limit) == true
                    else { continue }
                    near.append((record.name, limit, used, most))
                }
            }
            return near
        }
        for (website, limit, used, most) in near {
            log.warning(
                "website.limit.near",
                [.website: website, .limit: limit.rawValue, .count: used, .reason: "of \(most)"])
        }
    }

    /// The figures of each website for the metrics.
    private func shown(at now: Timestamp) -> [(website: String, percent: Int64, logins: Int64)] {
        usage.all(at: now) { records in
            records.map { website, record in
                let percents = WebsiteLimit.allCases.compactMap { limit -> Int64? in
                    guard let most = bound(limit, record.limits) else { return nil }
                    let used = limit == .held ? Int64(quotaUse.held(by: website)) : record.used(limit)
                    return used.map { $0 * 100 / Int64(max(most, 1)) }
                }
                return (record.name, percents.max() ?? 0, record.own.logins + record.others.logins)
            }
        }
    }

    /// The limit of a website, or that of the setting `quotas`.
    func bound(_ limit: WebsiteLimit, _ limits: WebsiteLimits) -> Int? {
        switch limit {
        case .users: limits[limit] ?? adjustable.quotas.users
        case .held: limits[limit] ?? adjustable.quotas.held
        default: limits[limit]
        }
    }
}

extension WebsiteUsage.Record {
    /// The rows that are to be written.
    fileprivate func rows(of website: WebsiteID) -> [WebsiteUsageRow] {
        var rows: [WebsiteUsageRow] = []
        if let former {
            rows.append(WebsiteUsageRow(website: website, day: former.day, counts: former.counts, users: nil))
        }
        if written?.counts != own || written?.users != users {
            rows.append(WebsiteUsageRow(website: website, day: day, counts: own, users: users))
        }
        return rows
    }

    fileprivate mutating func written(_ row: WebsiteUsageRow) {
        if row.day == day { written = (row.counts, row.users) }
        if row.day == former?.day { former = nil }
    }

    /// The longest time between two reads after which what is new counts in the minute: two periods
    /// of `recordUsage`.
    private static let longestPause = Duration.seconds(10)

    fileprivate mutating func learn(
        _ totals: WebsiteUsageTotals, at day: UsageDay, _ isWholeMonth: Bool, readAt instant: Instant
    ) {
        guard day == self.day else { return }
        let isContinuous = othersReadAt.map { instant - $0 <= Self.longestPause } ?? false
        if !isContinuous { minute.rebase(from: others.logins, to: totals.others.logins) }
        othersReadAt = instant
        others = totals.others
        if isWholeMonth { (earlier, knowsEarlierDays) = (totals.earlier, true) }
        texts = (totals.textsDay, totals.textsMonth)
    }

    /// Whether the operator was not yet warned of this limit in its period.
    fileprivate mutating func mayWarn(of limit: WebsiteLimit) -> Bool {
        let period = day.period(of: limit)
        guard warned[limit] != period else { return false }
        warned[limit] = period
        return true
    }
}
