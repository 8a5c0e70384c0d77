/// What a client may ask of us, and for how long. The defaults are the daemon's.
public struct ServerLimits: Sendable {
    /// Connections on one loop.
    public var connections = 10_000
    public var streams: UInt32 = 100
    public var streamWindow: UInt32 = 65_536
    public var connectionWindow: Int32 = 1_048_576
    /// The list as RFC 9113 §6.5.2 counts it. Over it: 431, and the list is not kept.
    public var headerBytes = 32_768
    public var headerCount = 100
    public var bodyBytes = 65_536
    /// Bodies that are still coming in, of one connection together. Over it a stream is refused (and may be repeated).
    public var pendingBodyBytes = 1_048_576
    /// Requests of one connection that are being worked on, whether or not their streams still stand. Over it a stream
    /// is refused.
    public var inFlight = 200

    public var handshake: Duration = .seconds(10)
    /// From the first byte of a connection's or a stream's request to its last.
    public var request: Duration = .seconds(60)
    /// In which the peer has to take `writeProgress` bytes, or all there is.
    public var write: Duration = .seconds(30)
    public var writeProgress: UInt64 = 1024
    public var settingsAcknowledgement: Duration = .seconds(10)
    /// Without a stream and without a frame.
    public var idle: Duration = .seconds(180)
    /// For the streams of a server that drains.
    public var drain: Duration = .seconds(30)

    public var abuseCapacity = 2000
    public var abusePerSecond = 100

    public init() {}
}
