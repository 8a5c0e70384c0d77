import World

/// The token that authenticates the requests of a pool, for all loops of the process.
///
/// A service may have to issue it first (`AccessToken`). Until then the pushes wait in their pools.
protocol PushAuthorization: AnyObject, Sendable {
    /// Returns whether requests can be sent now. If not, it obtains a token, and calls
    /// `authorizationChanged` of the pool after each attempt.
    func isReady(for pool: PushPool) -> Bool
    /// Returns the value of `authorization`; nil if there is none at present.
    ///
    /// - Parameter later: runs its work when the caller has nothing more urgent to do.
    func value(later: (@escaping @Sendable () -> Void) -> Void) -> String?
    /// Returns whether another value can follow one that the service calls expired.
    func mayFollow(_ value: String) -> Bool
    /// Replaces a value that the service refused as expired.
    func replace(_ value: String)
    /// Records that the service got too many values.
    func tooMany(_ value: String)

    var tokenAge: Duration? { get }
    /// The reason why the last attempt to obtain a token failed; nil if it succeeded.
    var failure: AuthorizationFailure? { get }
    /// The time before which no token can be obtained; nil if there is one, or if it can come at
    /// once.
    var nextAttempt: Instant? { get }
}

/// The reason why there is no token.
enum AuthorizationFailure: Error, Equatable {
    /// The service refuses the credential: only an operator can correct it.
    case refused(String)
    /// A later attempt may succeed.
    case unavailable(String)

    var reason: String {
        switch self {
        case .refused(let reason), .unavailable(let reason): reason
        }
    }
}
