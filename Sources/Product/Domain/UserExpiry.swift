import World

/// The expiry of a user: the time from which no login of the user succeeds, such as the end of a
/// contract.
///
/// It takes effect by comparison with the clock at each use, so no timer has to run. All phones and
/// factors of the user expire with the user; a single phone has no expiry of its own.
public enum UserExpiry {
    /// The time before an expiry in which operators are warned.
    public static let warning = Duration.seconds(7 * 86_400)

    /// Whether the expiry has passed.
    public static func hasPassed(_ expiresAt: Timestamp?, at now: Timestamp) -> Bool {
        expiresAt.map { $0 <= now } ?? false
    }

    /// Whether a website may set this expiry instead of `current`. It may only shorten one that an
    /// operator has set.
    public static func isAllowed(_ wanted: Timestamp?, insteadOf current: Timestamp?, by author: ChangeAuthor?) -> Bool
    {
        guard author == .operator, let current else { return true }
        return wanted.map { $0 <= current } ?? false
    }
}

extension UserState {
    /// Returns the state at `now` of a user with this stored state.
    public func seen(_ expiresAt: Timestamp?, at now: Timestamp) -> UserState {
        self == .active && UserExpiry.hasPassed(expiresAt, at: now) ? .expired : self
    }
}
