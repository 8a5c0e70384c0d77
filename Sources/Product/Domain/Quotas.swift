/// Limits on what one caller may use at the same time, and on what one website may store. They keep
/// one caller's mistake or attack from affecting the others. The defaults are far above the needs
/// of a healthy caller.
///
/// Each relay of a cluster counts by itself.
public struct Quotas: Sendable, Equatable {
    /// Requests of one website in work at the same time. Held ones are not in work.
    public var requests = 10_000
    /// Requests held for one website, its phones' included.
    public var held = 20_000
    /// Requests of one phone, or of one address without a certificate, in work at the same time.
    public var callerRequests = 256
    /// Users that one website may have; nil is as many as there is room for.
    public var users: Int?
    /// Users that one website may register in a minute.
    public var newUsers = 60_000

    public static let requestBounds = 10...1_000_000
    public static let heldBounds = 10...10_000_000
    public static let callerBounds = 1...100_000
    public static let userBounds = 1...1_000_000_000
    public static let newUserBounds = 1...1_000_000

    public init() {}
}
