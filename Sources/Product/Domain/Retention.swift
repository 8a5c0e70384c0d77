/// The number of days for which the store keeps ended challenges and audit rows.
public struct Retention: Sendable, Equatable {
    /// The permitted days for logins; at least two, because the result of a challenge can be read
    /// for a day.
    public static let loginDays = 2...3650
    public static let auditDays = 7...36_500

    public var logins = 30
    public var audit = 400

    public init() {}
}
