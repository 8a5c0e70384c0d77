import Domain
import Synchronization
import World

/// The use that websites make of the relays: the counts of the day, which are limited and billed.
///
/// Purpose: one website must not use up what all of them share, and an operator wants to know what
/// each one costs. Logins, pushes and mails are counted here, in memory, so that a login needs no
/// further write. Every five seconds each relay writes its counts of the day and reads those of the
/// others (`recordUsage`). Text messages cost most, and are counted in the store by the transaction
/// that begins them (`SMSBudget`). Here they are only known.
///
/// Invariant: a relay writes its own rows alone, and always the whole count of a day. So a write
/// that is repeated, or whose commit is unknown, counts nothing twice.
///
/// Tolerance: a limit may be exceeded by what the other relays have counted since the last read,
/// and by the requests that are in work. A relay that is killed loses the counts of the last five
/// seconds. In a minute, only those logins of other relays count that became known by a read soon
/// after another one (`UsageWindow.rebase`).
///
/// Tested in `WebsiteUsageTests.swift`.
final class WebsiteUsage: Sendable {
    /// The counts of one website on one day.
    struct Record {
        var name: String
        var day: UsageDay
        /// The counts of this relay on this day.
        var own = UsageCounts()
        /// The part of it that is written; nil if nothing is.
        var written: (counts: UsageCounts, users: Int64?)?
        /// The counts that other relays, and earlier runs of this one, have written for this day.
        var others = UsageCounts()
        /// The sum of the days of this month before this one, of all relays.
        var earlier = UsageCounts()
        /// Whether `earlier` was read since the day began.
        var knowsEarlierDays = false
        /// The segments of text messages of the day and of the month, at the last read.
        var texts = (day: Int64(0), month: Int64(0))
        /// The number of users at the last count of the day.
        var users: Int64?
        /// Counts of a former day that are not written yet.
        var former: (day: UsageDay, counts: UsageCounts)?
        var minute = UsageWindow(length: UsageWindow.minute)
        /// The messages that began because a push service was down.
        var outage = UsageWindow(length: .seconds(3600))
        /// When the counts of others were read last on this day; nil if they were not.
        var othersReadAt: Instant?
        /// The limits that were known when the website called last.
        var limits = WebsiteLimits()
        /// The limits that the operator was warned of, with their period.
        var warned: [WebsiteLimit: String] = [:]

        init(_ name: String, on day: UsageDay) {
            self.name = name
            self.day = day
        }

        /// The counts of all relays, as far as this one knows.
        func used(_ limit: WebsiteLimit) -> Int64? {
            switch limit {
            case .loginsMinute: minute.used(others: others.logins)
            case .loginsDay: own.logins + others.logins
            case .pushesDay: own.pushes + others.pushes
            case .mailsDay: own.mails + others.mails
            case .mailsMonth: own.mails + others.mails + earlier.mails
            case .textsDay: texts.day
            case .textsMonth: texts.month
            case .users: users
            case .held, .outageMessages: nil
            }
        }

        /// Begins a new day, if it is one. A clock that was set back continues the day.
        mutating func turn(to today: UsageDay) {
            guard today.number > day.number else { return }
            if written?.counts != own { former = (day, own) }
            let isSameMonth = today.month == day.month
            earlier = isSameMonth ? earlier + own + others : UsageCounts()
            if !isSameMonth { texts.month = 0 }
            day = today
            (own, others, written, users, texts.day) = (UsageCounts(), UsageCounts(), nil, nil, 0)
            (minute, othersReadAt, knowsEarlierDays) = (UsageWindow(length: UsageWindow.minute), nil, false)
        }
    }

    private let records = Mutex<[WebsiteID: Record]>([:])
    private let readAt = Mutex<Instant?>(nil)

    /// Whether the counts of other relays have not been read for a minute.
    func isReadDue(at now: Instant) -> Bool { readAt.withLock { $0 }.map { now - $0 >= UsageWindow.minute } ?? true }

    func wasRead(at now: Instant) { readAt.withLock { $0 = now } }

    /// Runs the body with the record of a website for the present day.
    func update<Value>(
        _ website: WebsiteID, _ name: String, at now: Timestamp, _ body: (inout Record) -> Value
    ) -> Value {
        let today = UsageDay(now)
        return records.withLock { records in
            // Moved out and back, because a copy of a record takes longer than the lookups.
            var record = records.removeValue(forKey: website) ?? Record(name, on: today)
            record.turn(to: today)
            record.name = name
            defer { records[website] = record }
            return body(&record)
        }
    }

    /// Counts something for a website.
    func count(
        _ kind: any WritableKeyPath<UsageCounts, Int64> & Sendable, _ amount: Int = 1, of website: WebsiteID,
        _ name: String, at now: Timestamp
    ) {
        guard amount > 0 else { return }
        update(website, name, at: now) { $0.own[keyPath: kind] += Int64(amount) }
    }

    /// Returns what a website has used of a limit; nil if this relay does not know it.
    func used(_ limit: WebsiteLimit, by website: WebsiteID, at now: Timestamp) -> Int64? {
        let today = UsageDay(now)
        return records.withLock { records in
            records[website]?.turn(to: today)
            return records[website]?.used(limit)
        }
    }

    /// Runs the body with all records.
    func all<Value>(at now: Timestamp, _ body: (inout [WebsiteID: Record]) -> Value) -> Value {
        let today = UsageDay(now)
        return records.withLock { records in
            for website in Array(records.keys) { records[website]?.turn(to: today) }
            return body(&records)
        }
    }
}

/// The kinds of use that are counted in memory.
public struct UsageCounts: Sendable, Equatable {
    /// Challenges that were opened.
    public var logins: Int64 = 0
    /// Pushes that were begun, one for each phone.
    public var pushes: Int64 = 0
    /// Mails that were begun. Notices about accounts count when a server took them.
    public var mails: Int64 = 0

    public init(logins: Int64 = 0, pushes: Int64 = 0, mails: Int64 = 0) {
        (self.logins, self.pushes, self.mails) = (logins, pushes, mails)
    }

    public static func + (a: UsageCounts, b: UsageCounts) -> UsageCounts {
        UsageCounts(logins: a.logins + b.logins, pushes: a.pushes + b.pushes, mails: a.mails + b.mails)
    }
}

/// The uses in a span of time that begins with the first, such as the requests for logins in a
/// minute. A refused one does not count.
struct UsageWindow {
    let length: Duration
    private var start: Timestamp?
    private var own: Int64 = 0
    /// The uses of the other relays when the window began.
    private var othersAtStart: Int64 = 0

    static let minute = Duration.seconds(60)

    init(length: Duration) { self.length = length }

    func used(others: Int64) -> Int64 { own + max(0, others - othersAtStart) }

    /// Takes what has just become known of the other relays as logins from before this minute.
    ///
    /// The first read of a day knows all of their logins since midnight, and one after a pause all
    /// since then. Most of these are older than the minute, and must not use it up.
    mutating func rebase(from known: Int64, to others: Int64) { othersAtStart += others - known }

    /// Counts a use, unless the limit is reached. Returns the time until the next window if it is.
    mutating func take(limit: Int?, others: Int64, at now: Timestamp) -> Duration? {
        if let start, (Duration.zero..<length).contains(now - start) {
            if let limit, used(others: others) >= limit { return start + length - now }
        } else if let limit, limit <= 0 {
            return length
        } else {
            (start, own, othersAtStart) = (now, 0, others)
        }
        own += 1
        return nil
    }
}
