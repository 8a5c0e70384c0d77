/// An observer of pushes and connections, for metrics. The sender calls it on its loops: a method
/// must be quick and must not call the sender. Every method is optional.
public protocol PushObserver: Sendable {
    /// Reports an answer.
    ///
    /// - Parameter reason: one of Apple's names, `Success` for 200, or `Other`: few enough values
    ///   for a metric label.
    func answered(status: Int, reason: String, after duration: Duration)
    /// Reports a push that was sent and whose result is unknown.
    func unanswered(_ why: PushUnansweredReason, after duration: Duration)
    /// Reports a push that was not sent and will not be.
    func unsent(_ why: PushUnsentReason)
    func connected(host: String)
    /// Reports the end of an open connection, or a failed attempt to open one.
    func disconnected(host: String, reason: String)
    func goAway(host: String, reason: String)
    /// Reports a device token that Apple no longer accepts.
    func tokenRetired(reason: String)
}

extension PushObserver {
    public func answered(status: Int, reason: String, after duration: Duration) {}
    public func unanswered(_ why: PushUnansweredReason, after duration: Duration) {}
    public func unsent(_ why: PushUnsentReason) {}
    public func connected(host: String) {}
    public func disconnected(host: String, reason: String) {}
    public func goAway(host: String, reason: String) {}
    public func tokenRetired(reason: String) {}
}

/// The reason why a sent push has no answer.
public enum PushUnansweredReason: String, Sendable, CaseIterable {
    /// The push reached its deadline.
    case timeout
    /// The service reset the stream.
    case reset
    /// The connection was lost.
    case lost
}

/// The reason why a push was not sent.
public enum PushUnsentReason: String, Sendable, CaseIterable {
    /// The queue is full.
    case full
    /// The push has expired.
    case expired
    /// The push waited until the sender's deadline.
    case late
    /// No connection is open, and none can be opened before the push ends.
    case unreachable
    /// Apple refuses the relay's key or certificate.
    case credential
    /// The push is invalid: the service would refuse it.
    case invalid
    /// The service refused the stream unprocessed too many times.
    case refused
    /// The sender is closed.
    case closed
}
