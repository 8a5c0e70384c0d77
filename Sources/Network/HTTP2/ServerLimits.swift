import HTTP

/// The limits for a client: sizes, counts and times. The defaults are those of the daemon.
public struct ServerLimits: Sendable {
    /// The number of connections on one loop, if no `AdmissionControl` counts them.
    public var connections = 10_000
    public var streams: UInt32 = 100
    public var streamWindow: UInt32 = 65_536
    public var connectionWindow: Int32 = 1_048_576
    /// The size of a field list as RFC 9113 §6.5.2 counts it. Above it the answer is 431, and the
    /// list is not stored. At more than twice the limit, in bytes or in fields, the stream is
    /// reset.
    public var headerBytes = 32_768
    public var headerCount = 100
    public var bodyBytes = Request.bodyLimit
    /// The total of incomplete bodies of one connection. Above it a stream is refused (and the
    /// request may be repeated).
    public var pendingBodyBytes = 1_048_576
    /// The number of body bytes that are read and dropped after the request has been answered. Many
    /// clients read no answer before they have written everything. Above this limit the stream is
    /// reset.
    public var droppedBodyBytes = 1_048_576
    /// The number of requests of one connection that are in work, even if their streams are closed
    /// already. Above it a stream is refused.
    public var inFlight = 200

    public var handshake: Duration = .seconds(10)
    /// The time from the first byte of a request's head to its last byte, and for every other
    /// frame. After that the connection ends or, if the request has been answered, the stream.
    public var request: Duration = .seconds(60)
    /// The time in which the peer must take `writeProgress` bytes, or all that there are.
    public var write: Duration = .seconds(30)
    public var writeProgress: UInt64 = 1024
    public var settingsAcknowledgement: Duration = .seconds(10)
    /// The time without a stream and without a frame.
    public var idle: Duration = .seconds(180)
    /// The time that streams have to end when the server drains.
    public var drain: Duration = .seconds(30)
    /// The time for each step of a drain that waits for the client: for its open streams before the
    /// notice, and for a round trip.
    public var drainStep: Duration = .seconds(1)

    public var abuseCapacity = 2000
    public var abusePerSecond = 100

    public init() {}
}
