/// What a client may ask of us, and for how long. The defaults are the daemon's.
public struct ServerLimits: Sendable {
    /// The number of connections on one loop, where no admission counts them.
    public var connections = 10_000
    public var streams: UInt32 = 100
    public var streamWindow: UInt32 = 65_536
    public var connectionWindow: Int32 = 1_048_576
    /// The list as RFC 9113 §6.5.2 counts it. Over it: 431, and the list is not kept. Over twice as
    /// much, in bytes or in fields: the stream is reset.
    public var headerBytes = 32_768
    public var headerCount = 100
    public var bodyBytes = 65_536
    /// Bodies that are still coming in, of one connection together. Over it a stream is refused (and may be repeated).
    public var pendingBodyBytes = 1_048_576
    /// The number of body bytes that are read and dropped after the request has been answered. Many
    /// clients read no answer before they have written everything. Above this limit the stream is
    /// reset.
    public var droppedBodyBytes = 1_048_576
    /// Requests of one connection that are being worked on, whether or not their streams still stand. Over it a stream
    /// is refused.
    public var inFlight = 200

    public var handshake: Duration = .seconds(10)
    /// From the first byte of a request's head to its last byte, and for every other frame. After
    /// it the connection ends, or, if the request has been answered, the stream.
    public var request: Duration = .seconds(60)
    /// In which the peer has to take `writeProgress` bytes, or all there is.
    public var write: Duration = .seconds(30)
    public var writeProgress: UInt64 = 1024
    public var settingsAcknowledgement: Duration = .seconds(10)
    /// Without a stream and without a frame.
    public var idle: Duration = .seconds(180)
    /// For the streams of a server that drains.
    public var drain: Duration = .seconds(30)
    /// For each step of a drain that waits for the client: its open streams before the notice, and a round trip.
    public var drainStep: Duration = .seconds(1)

    public var abuseCapacity = 2000
    public var abusePerSecond = 100

    public init() {}
}
