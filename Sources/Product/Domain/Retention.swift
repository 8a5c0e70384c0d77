/// The number of days for which the store keeps ended challenges, audit rows, and the counts of what
/// websites use.
public struct Retention: Sendable, Equatable {
    /// The permitted days for logins; at least two, because the result of a challenge can be read
    /// for a day.
    public static let loginDays = 2...3650
    public static let auditDays = 7...36_500
    /// At least two months, because a limit may count those of the present one.
    public static let usageDays = 62...36_500

    public var logins = 30
    public var audit = 400
    public var usage = 800

    public init() {}
}
