import HTTP
import HTTP2
import World

/// The requests and answers of one push service. The pool, the deadlines, the retries and the
/// circuit breaker are the same for all services.
protocol PushDialect: Sendable {
    var events: PushEvents { get }
    /// Returns the endpoint for device tokens of this environment.
    func endpoint(_ configured: PushEndpoint, for environment: APNsNotification.Environment?) -> PushEndpoint
    /// Returns the fields that all requests share.
    func form(authority: String, authorization: String?) -> RequestForm
    func answer(_ response: Response, at now: Timestamp) -> any PushAnswer
}

/// The names of the events in the log. They are fixed texts, so that each service has its own.
struct PushEvents: Sendable {
    let connected: StaticString
    let disconnected: StaticString
    let answer: StaticString
    let refused: StaticString
    let credentialRefused: StaticString
    let credentialAccepted: StaticString
}
