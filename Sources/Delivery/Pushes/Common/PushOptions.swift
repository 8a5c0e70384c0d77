import EventLoop
import HTTP2

/// The limits and times of the APNs sender. The defaults fit pushes that must succeed or fail
/// within seconds.
public struct PushOptions: Sendable {
    /// Connections to each host on each loop. With two, one still works when the other is lost.
    public var connections = 2
    /// The longest time from `send` to the outcome.
    public var deadline: Duration = .seconds(9)
    /// Pushes of one loop to one host that may wait for a stream. More are refused.
    public var capacity = 2000
    /// Concurrent streams on one connection: the default if the service names no limit, and the
    /// maximum in every case.
    public var streams = 1000
    /// Silence after which a connection that owes an answer is checked by a PING.
    public var suspicion: Duration = .seconds(3)
    /// Silence after which a connection is checked when it is next used.
    public var quiet: Duration = .seconds(60)
    /// Silence after which a connection is checked even if it is idle.
    public var keepAlive: Duration = .seconds(3600)
    public var connectTimeout: Duration = .seconds(4)
    public var pingTimeout: Duration = .seconds(3)
    /// The time after which the kernel gives up a connection whose sent data is not acknowledged.
    public var userTimeout: Duration = .seconds(8)
    /// The mean pause between two openings to one host, over all loops; each pause varies by half.
    public var stagger: Duration = .milliseconds(200)
    /// The function that resolves the host's name; called for every connection.
    public var resolver: @Sendable (_ host: String, _ port: UInt16) async -> Result<[SocketAddress], ResolverFailure> =
        { host, port in await Resolver.addresses(host: host, port: port) }

    public init() {}

    var client: ClientOptions {
        var options = ClientOptions()
        options.connectTimeout = connectTimeout
        options.pingTimeout = pingTimeout
        options.userTimeout = userTimeout
        options.maxStreams = streams
        // The pool has the queue, so the connections need none.
        options.maxQueued = 0
        // Apple's answers are short.
        options.responseBytes = 16_384
        return options
    }
}
