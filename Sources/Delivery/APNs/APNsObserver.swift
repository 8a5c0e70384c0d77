/// Is told what happens to pushes and connections, for metrics. Called on the sender's loops: it must be quick, and must
/// not call the sender. Every method may be left out.
public protocol APNsObserver: Sendable {
    /// `reason` is one of Apple's names, `Success` with 200, or `Other`: few enough to label a metric with.
    func answered(status: Int, reason: String, after duration: Duration)
    /// It was sent, and nobody knows what became of it.
    func unanswered(_ why: APNsUnansweredReason, after duration: Duration)
    /// It was never sent, and will not be.
    func unsent(_ why: APNsUnsentReason)
    func connected(host: String)
    /// One that stood, or an attempt at one.
    func disconnected(host: String, reason: String)
    func goAway(host: String, reason: String)
    /// A device token that nothing is delivered to any more.
    func tokenRetired(reason: String)
}

extension APNsObserver {
    public func answered(status: Int, reason: String, after duration: Duration) {}
    public func unanswered(_ why: APNsUnansweredReason, after duration: Duration) {}
    public func unsent(_ why: APNsUnsentReason) {}
    public func connected(host: String) {}
    public func disconnected(host: String, reason: String) {}
    public func goAway(host: String, reason: String) {}
    public func tokenRetired(reason: String) {}
}

/// Why there is no answer to what was sent.
public enum APNsUnansweredReason: String, Sendable, CaseIterable {
    /// Its time was over.
    case timeout
    /// The service ended its stream.
    case reset
    /// The connection is no more.
    case lost
}

/// Why a push was not sent.
public enum APNsUnsentReason: String, Sendable, CaseIterable {
    /// Too many wait already.
    case full
    /// Nobody needs it any more.
    case expired
    /// It waited for as long as it may.
    case late
    /// There is no connection, and will be none in time.
    case unreachable
    /// Our key or certificate is refused.
    case credential
    /// The service would not take it as it is.
    case invalid
    /// The service went away from it, again and again.
    case refused
    /// The sender is closed.
    case closed
}
