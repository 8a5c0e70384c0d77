import GSM
import World

/// Where text messages may go, and how many. Each one is paid for, and there are people who live on having them sent to
/// numbers of theirs: so a user, a country and the day have an end each. Hours and days are those of UTC.
public struct SMSLimits: Sendable, Equatable {
    /// Numbers that begin with none of these get no message.
    public var allowed: [NumberPrefix]
    /// Beginnings that are counted by themselves, besides the countries.
    public var counted: [NumberPrefix]
    /// Of one user.
    public var userHour: Int
    public var userDay: Int
    /// Of one beginning; nil is as many as the day bears.
    public var prefixHour: Int?
    public var prefixDay: Int?
    /// Of all users.
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

    /// Under which beginning a number is counted: its country's, or the longest that the settings name, if that is longer.
    public func prefix(of number: String) -> NumberPrefix {
        let country = NumberPrefix.country(of: number)
        guard let named = (allowed + counted).longest(of: number), named.length > country.length else { return country }
        return named
    }

    /// What a message to that number is counted against; nil where none may go there.
    public func charge(user: UserID, to number: String, at now: Timestamp) -> SMSCharge? {
        guard allows(number) else { return nil }
        let prefix = prefix(of: number)
        let (day, hour) = (SMSCharge.day(now), SMSCharge.hour(now))
        return SMSCharge(
            prefix: prefix,
            // The day of all comes first: whoever holds that row holds all of them.
            tallies: [
                .init(period: day, scope: "", limit: self.day),
                .init(period: day, scope: prefix.text, limit: prefixDay),
                .init(period: hour, scope: prefix.text, limit: prefixHour),
                .init(period: day, scope: user.text, limit: userDay),
                .init(period: hour, scope: user.text, limit: userHour),
            ])
    }
}

/// The tallies that one text message counts in.
public struct SMSCharge: Sendable, Equatable {
    public struct Count: Sendable, Equatable {
        /// `2026-11-22`, or `2026-11-22 09`.
        public let period: String
        /// Empty for all, the beginning of numbers, or the id of a user.
        public let scope: String
        public let limit: Int?
    }

    public let prefix: NumberPrefix
    public let tallies: [Count]

    public static func day(_ moment: Timestamp) -> String { String(moment.sql.prefix(10)) }
    static func hour(_ moment: Timestamp) -> String { String(moment.sql.prefix(13)) }
}
