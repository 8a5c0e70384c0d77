/// How things stand, over all loops, hosts and connections.
public struct APNsSnapshot: Sendable, Equatable {
    /// Open, and taking pushes.
    public var connections = 0
    /// Sent, and not answered.
    public var inFlight = 0
    /// Waiting for a stream.
    public var queued = 0
    /// Of those that wait, the one that has waited longest.
    public var oldestWait: Duration?
    /// What the service allows now, on all open connections together.
    public var streamLimit = 0
    /// Nil where a certificate speaks for us.
    public var providerTokenAge: Duration?

    public init() {}
}
