import EventLoop
import HTTP2

public struct APNsOptions: Sendable {
    /// To each host, on each loop: when one is lost, the others go on.
    public var connections = 2
    /// From `send` to its outcome, whatever happens.
    public var deadline: Duration = .seconds(9)
    /// Pushes of one loop to one host that wait for a stream. More are refused.
    public var capacity = 2000
    /// At a time on one connection where the service names no limit, and never more.
    public var streams = 1000
    /// A connection that says nothing for so long while it owes an answer is asked whether it still stands.
    public var suspicion: Duration = .seconds(3)
    /// So is one that has been quiet for so long when it is next used,
    public var quiet: Duration = .seconds(60)
    /// and one that nothing has come from for so long, used or not.
    public var keepAlive: Duration = .seconds(3600)
    public var connectTimeout: Duration = .seconds(4)
    public var pingTimeout: Duration = .seconds(3)
    /// The kernel gives a connection up when nobody acknowledges what was sent for so long.
    public var userTimeout: Duration = .seconds(8)
    /// Between two connections to one host being opened, whichever loop they are for; give or take half.
    public var stagger: Duration = .milliseconds(200)
    /// Asked for every connection.
    public var resolver: @Sendable (_ host: String, _ port: UInt16) async -> Result<[SocketAddress], ResolverFailure> =
        { host, port in await Resolver.addresses(host: host, port: port) }

    public init() {}

    var client: ClientOptions {
        var options = ClientOptions()
        options.connectTimeout = connectTimeout
        options.pingTimeout = pingTimeout
        options.userTimeout = userTimeout
        options.maxStreams = streams
        // The queue is in front of the connections.
        options.maxQueued = 0
        // Apple's answers are short.
        options.responseBytes = 16_384
        return options
    }
}
