import GSM
import World

/// The limits on text messages: permitted prefixes and maximum counts. Each message costs money,
/// and fraudsters earn by having messages sent to their own numbers. Therefore each user, each
/// prefix and each day has a limit. Hours and days are in UTC.
public struct SMSLimits: Sendable, Equatable {
    /// The permitted prefixes; other numbers get no message.
    public var allowed: [NumberPrefix]
    /// Prefixes that are counted separately, in addition to the countries.
    public var counted: [NumberPrefix]
    /// The maximum number of messages to one user in an hour.
    public var userHour: Int
    /// The maximum number of messages to one user in a day.
    public var userDay: Int
    /// The maximum for one prefix in an hour; nil means no limit but the daily one.
    public var prefixHour: Int?
    /// The maximum for one prefix in a day; nil means no limit but the total.
    public var prefixDay: Int?
    /// The maximum for all users in a day; nil means no limit.
    public var day: Int?

    public init(
        allowed: [NumberPrefix] = [.all], counted: [NumberPrefix] = [], userHour: Int = 5, userDay: Int = 20,
        prefixHour: Int? = nil, prefixDay: Int? = nil, day: Int? = nil
    ) {
        self.allowed = allowed
        self.counted = counted
        self.userHour = userHour
        self.userDay = userDay
        self.prefixHour = prefixHour
        self.prefixDay = prefixDay
        self.day = day
    }

    public func allows(_ number: String) -> Bool {
        FieldRule.phone(number) == nil && allowed.contains { $0.matches(number) }
    }

    /// Returns the prefix under which a number is counted: that of its country, or the longest one
    /// in the settings if that is longer.
    public func prefix(of number: String) -> NumberPrefix {
        let country = NumberPrefix.country(of: number)
        guard let named = (allowed + counted).longest(of: number), named.length > country.length else { return country }
        return named
    }

    /// Returns the tallies that a message to the number increments; nil if no message may go there.
    public func charge(user: UserID, to number: String, at now: Timestamp) -> SMSCharge? {
        guard allows(number) else { return nil }
        let prefix = prefix(of: number)
        let (day, hour) = (UsageDay(now).text, UsageDay.hour(of: now))
        return SMSCharge(
            prefix: prefix,
            // The daily total comes first: a transaction that locks its row excludes all others.
            tallies: [
                .init(period: day, scope: "", limit: self.day),
                .init(period: day, scope: prefix.text, limit: prefixDay),
                .init(period: hour, scope: prefix.text, limit: prefixHour),
                .init(period: day, scope: user.text, limit: userDay),
                .init(period: hour, scope: user.text, limit: userHour),
            ])
    }
}

/// The tallies that one text message increments.
public struct SMSCharge: Sendable, Equatable {
    /// The number of tallies of a message without a website. The tallies behind them are those of
    /// the website: they limit segments, the others messages.
    public static let common = 5

    public struct Count: Sendable, Equatable {
        /// The day, hour or month: `2026-11-22`, `2026-11-22 09`, or `2026-11`.
        public let period: String
        /// The scope: empty for all users, a number prefix, the id of a user, or w and the id of a
        /// website.
        public let scope: String
        public let limit: Int?
    }

    public let prefix: NumberPrefix
    public private(set) var tallies: [Count]

    /// Returns the charge with the tallies of the website: the segments of the day and of the month.
    public func also(counting website: WebsiteID, within limits: WebsiteLimits, at now: Timestamp) -> SMSCharge {
        var charge = self
        let scope = Self.scope(website)
        let today = UsageDay(now)
        for limit in [WebsiteLimit.textsDay, .textsMonth] {
            charge.tallies.append(.init(period: today.period(of: limit), scope: scope, limit: limits[limit]))
        }
        return charge
    }

    /// The scope of the tallies of a website. A user's is its id alone.
    public static func scope(_ website: WebsiteID) -> String { "w" + website.text }
}
