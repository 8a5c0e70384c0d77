/// The limits and timeouts of one connection to a server.
public struct ClientOptions: Sendable {
    /// The time for name resolution, TCP, TLS and the server's SETTINGS together.
    public var connectTimeout: Duration = .seconds(10)
    /// If the server acknowledges no sent bytes for this long, the connection counts as dead.
    public var userTimeout: Duration = .seconds(20)
    public var pingTimeout: Duration = .seconds(10)
    /// The highest number of concurrent streams. It also applies if the server sets no limit.
    public var maxStreams = 1000
    /// The highest number of requests that wait for a stream.
    public var maxQueued = 10_000
    public var responseBytes = 1_048_576
    public var responseHeaderBytes = 32_768
    public var responseHeaderCount = 100
    public var abuseCapacity = 5000
    public var abusePerSecond = 500

    public init() {}
}

public enum ClientState: Sendable, Equatable {
    /// Not connected yet.
    case connecting
    case open
    /// The server sent GOAWAY, or `retire` was called. Sent requests may still be answered; new
    /// ones are not sent.
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
    /// The server certainly did not process the request, so it may be repeated.
    case notSent(String)
    /// It is unknown whether the server processed the request.
    case ambiguous(String)
}
