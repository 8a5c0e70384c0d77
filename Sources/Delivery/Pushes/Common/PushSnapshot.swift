/// The state of the sender, summed over all loops, hosts and connections.
public struct PushSnapshot: Sendable, Equatable {
    /// Connections that are open and take pushes.
    public var connections = 0
    /// Pushes that were sent and not yet answered.
    public var inFlight = 0
    /// Pushes that wait for a stream.
    public var queued = 0
    /// The longest time that a waiting push has waited; nil if none waits.
    public var oldestWait: Duration?
    /// The number of streams that the service allows now on all open connections together.
    public var streamLimit = 0
    /// The age of the token that requests carry; nil if there is none.
    public var tokenAge: Duration?

    public init() {}
}
