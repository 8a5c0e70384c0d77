import World

/// A day in UTC, in which uses and costs are counted and limited.
public struct UsageDay: Sendable, Hashable {
    static let length = Duration.seconds(86_400)

    /// The days since 1970.
    public let number: Int64

    public init(_ moment: Timestamp) { number = moment.seconds / 86_400 }

    var start: Timestamp { Timestamp(seconds: number * 86_400) }
    public var end: Timestamp { start + Self.length }

    /// `2026-11-27`
    public var text: String { String(start.sql.prefix(10)) }
    /// `2026-11`
    public var month: String { String(start.sql.prefix(7)) }

    /// The first day of the next month.
    private var nextMonth: Timestamp {
        var day = self
        while day.month == month { day = UsageDay(day.end) }
        return day.start
    }

    /// The hour of a moment, such as `2026-11-27 09`.
    static func hour(of moment: Timestamp) -> String { String(moment.sql.prefix(13)) }

    // MARK: Limits

    /// The day or month in which a limit counts.
    public func period(of limit: WebsiteLimit) -> String { limit.isOfMonth ? month : text }

    /// The time at which a limit of the day or month counts from zero again.
    public func end(of limit: WebsiteLimit) -> Timestamp { limit.isOfMonth ? nextMonth : end }
}
