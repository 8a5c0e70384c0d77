import Domain
import Synchronization
import World

/// The quota of users of each website, and of the users that it registers in a minute through this
/// relay.
///
/// Counting a website's users reads as many rows as there are users. So the relay counts only from
/// time to time, and adds the users that it registered since. If several relays register users at
/// the same time, a website may exceed its quota by a few users until the next count.
final class UserQuota: Sendable {
    /// The time for which a count is used.
    static let countLifetime = Duration.seconds(600)
    /// The least time between two counts while the quota is used up.
    static let countPause = Duration.seconds(60)

    enum Verdict: Equatable {
        case allowed
        /// The users must be counted first.
        case count
        case refused(retryAfter: Duration)
    }

    private struct Record {
        /// The time up to which registrations have used the rate. Each registration moves it
        /// forward by its part of a minute, and it is never more than a minute ahead.
        var paidUntil: Instant
        var users: Int?
        var countedAt: Instant?
    }

    private let current: Mutex<Quotas>
    private var quotas: Quotas { current.withLock { $0 } }
    private let records = Mutex<[WebsiteID: Record]>([:])

    init(_ quotas: Quotas) { current = Mutex(quotas) }

    /// Replaces the limits for later uses. What callers hold already stays theirs.
    func replace(_ quotas: Quotas) { current.withLock { $0 = quotas } }

    /// Whether the website may register one more user.
    ///
    /// - Parameter most: the website's own limit; nil if that of the settings applies.
    func take(_ website: WebsiteID, upTo most: Int? = nil, at now: Instant) -> Verdict {
        records.withLock { records in
            var record = records[website] ?? Record(paidUntil: now)
            defer { records[website] = record }
            if let limit = most ?? quotas.users {
                let age = record.countedAt.map { now - $0 }
                guard let users = record.users, let age, age < Self.countLifetime else { return .count }
                if users >= limit {
                    return age >= Self.countPause ? .count : .refused(retryAfter: Self.countPause - age)
                }
            }
            let paid = max(record.paidUntil, now) + .nanoseconds(60_000_000_000 / Int64(quotas.newUsers))
            guard paid <= now + .seconds(60) else { return .refused(retryAfter: paid - (now + .seconds(60))) }
            record.paidUntil = paid
            return .allowed
        }
    }

    /// Adds a registered user to the count.
    func registered(_ website: WebsiteID) {
        records.withLock { records in
            if let users = records[website]?.users { records[website]?.users = users + 1 }
        }
    }

    /// Records the result of a count.
    func counted(_ users: Int, of website: WebsiteID, at now: Instant) {
        records.withLock { records in
            records[website]?.users = users
            records[website]?.countedAt = now
        }
    }
}
