import EventLoop

/// The limits and timeouts of one connection to a server.
public struct ClientOptions: Sendable {
    /// The name that the server's certificate must have, for a client that connects to an address;
    /// nil for the host.
    public var serverName: String?
    /// The balancers of the server. It expects a PROXY header from their addresses: if this end of the
    /// connection has one of them, the client says that the connection is its own.
    public var proxies: [AddressRange] = []
    /// The time from the start of `connect` to the server's SETTINGS. It includes name resolution,
    /// TCP and TLS.
    public var connectTimeout: Duration = .seconds(10)
    /// The time for which TCP may leave sent bytes unacknowledged. After that, the kernel closes the
    /// connection.
    public var userTimeout: Duration = .seconds(20)
    /// The time for the answer to a PING.
    public var pingTimeout: Duration = .seconds(10)
    /// The maximum number of concurrent streams. The server can only lower it.
    public var maxStreams = 1000
    /// The maximum number of requests that wait for a stream. Further ones fail at once.
    public var maxQueued = 10_000
    /// The maximum length of a response body.
    public var responseBytes = 1_048_576
    /// The maximum size of a response's header, as RFC 9113 §6.5.2 counts it.
    public var responseHeaderBytes = 32_768
    /// The maximum number of fields in that header.
    public var responseHeaderCount = 100
    /// The abuse budget of the server: its capacity, and how much of it returns each second.
    public var abuseCapacity = 5000
    public var abusePerSecond = 500

    public init() {}
}

public enum ClientState: Sendable, Equatable {
    /// Not connected yet.
    case connecting
    case open
    /// The server sent GOAWAY, or `retire` was called. No new requests are sent; those already sent
    /// may still be answered.
    case goingAway
    case closed

    /// The state in words, for messages.
    var text: String {
        switch self {
        case .connecting: "connecting"
        case .open: "open"
        case .goingAway: "going away"
        case .closed: "closed"
        }
    }
}

/// The reason why a connection could not be made.
public enum ConnectionFailure: Error, Sendable, Equatable, CustomStringConvertible {
    case resolve(String)
    case connect(String)
    case tls(String)
    case timedOut
    /// The server closed the connection before it sent its SETTINGS.
    case closed(String)

    public var description: String {
        switch self {
        case .resolve(let reason): "cannot resolve: \(reason)"
        case .connect(let reason): "cannot connect: \(reason)"
        case .tls(let reason): "TLS: \(reason)"
        case .timedOut: "timed out"
        case .closed(let reason): "closed: \(reason)"
        }
    }
}

/// The reason why a request has no answer.
public enum RequestFailure: Error, Sendable, Equatable {
    /// The server did not process the request, so it is safe to repeat it.
    case notSent(String)
    /// The server may have processed the request.
    case ambiguous(String)
}
