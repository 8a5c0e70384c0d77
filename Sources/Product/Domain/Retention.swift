/// For how many days what is over can be looked up in the store.
public struct Retention: Sendable, Equatable {
    /// The result of a challenge can be read for a day.
    public static let loginDays = 2...3650
    public static let auditDays = 7...36_500

    public var logins = 30
    public var audit = 400

    public init() {}
}
