import HTTP

/// The pages of a server. They are called on the server's loop, so they must not block; they may
/// suspend.
public protocol Pages: Sendable {
    /// Answers a GET, HEAD or POST request. The server removes the body of an answer to HEAD.
    func answer(_ request: Request) async -> Response
}

/// The limits of an `HTTP1Server`.
public struct PageLimits: Sendable {
    /// The number of connections at the same time. Further ones are refused.
    public var connections: UInt32 = 32
    /// The length of a request body. Longer ones are refused with 413.
    public var bodyBytes = Request.bodyLimit
    /// The time that a client has from the start of the connection, or from its last answer, until
    /// the next answer is sent. The time that `Pages` needs does not count.
    public var timeout: Duration = .seconds(30)
    /// The time that `Pages` has for an answer. After it, the client gets 503.
    public var answer: Duration = .seconds(20)

    public init() {}
}
