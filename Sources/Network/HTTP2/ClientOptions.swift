/// How one connection to a server is used.
public struct ClientOptions: Sendable {
    /// For resolving, connecting, TLS and the server's SETTINGS together.
    public var connectTimeout: Duration = .seconds(10)
    /// Sent bytes that nobody acknowledges for so long mean that the connection is dead.
    public var userTimeout: Duration = .seconds(20)
    public var pingTimeout: Duration = .seconds(10)
    /// Streams at a time where the server names no limit, and never more than this.
    public var maxStreams = 1000
    /// Requests that may wait for a stream.
    public var maxQueued = 10_000
    public var responseBytes = 1_048_576
    public var responseHeaderBytes = 32_768
    public var responseHeaderCount = 100
    public var abuseCapacity = 5000
    public var abusePerSecond = 500

    public init() {}
}

public enum ClientState: Sendable, Equatable {
    /// Not connected yet, or on the way to it.
    case connecting
    case open
    /// The server has said GOAWAY, or `retire` was called: what was sent may still be answered, nothing new is sent.
    case goingAway
    case closed
}

/// Why there is no connection.
public enum ConnectionFailure: Error, Sendable, Equatable, CustomStringConvertible {
    case resolve(String)
    case connect(String)
    case tls(String)
    case timedOut
    /// The server ended it before it had said anything.
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

/// Why a request has no answer.
public enum RequestFailure: Error, Sendable, Equatable {
    /// The server has certainly not worked on it: it may be repeated.
    case notSent(String)
    /// Nobody knows whether the server has worked on it.
    case ambiguous(String)
}
