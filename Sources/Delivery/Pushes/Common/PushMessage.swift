import HTTP2
import World

/// A push as the pool sees it, whichever service it goes to.
protocol PushMessage: Sendable {
    /// The id in the log, the same for every attempt.
    var id: String { get }
    /// On whose behalf it is sent. Pushes that wait for a stream are taken from each owner in turn.
    var owner: String { get }
    /// The environment of its device token; nil if the service has only one.
    var tokenEnvironment: APNsNotification.Environment? { get }
    /// The number of earlier attempts, with which the pause before the next one grows.
    var attempts: Int { get }
    /// The reason why the service would refuse it, found before it is sent; nil if it is valid.
    var fault: String? { get }
    /// The last time at which it may be sent.
    var end: Timestamp { get }

    /// Returns the path, fields and body of its request.
    func request(at now: Timestamp) -> FormedRequest
}
