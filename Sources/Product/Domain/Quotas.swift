/// Limits on what one caller may use at the same time, and on what one website may store. They keep
/// one caller's mistake or attack from affecting the others. The defaults are far above the needs
/// of a healthy caller.
///
/// Each relay of a cluster counts by itself.
public struct Quotas: Sendable, Equatable {
    /// The maximum number of concurrent requests of one website. Held requests do not count.
    public var requests = 10_000
    /// The maximum number of held requests for one website, including its phones.
    public var held = 20_000
    /// The maximum number of concurrent requests of one phone, or of one address without a
    /// certificate.
    public var callerRequests = 256
    /// The maximum number of users of one website; nil means no limit.
    public var users: Int?
    /// The maximum number of users that one website may register in a minute.
    public var newUsers = 60_000

    public static let requestBounds = 10...1_000_000
    public static let heldBounds = 10...10_000_000
    public static let callerBounds = 1...100_000
    public static let userBounds = 1...1_000_000_000
    public static let newUserBounds = 1...1_000_000

    public init() {}
}
