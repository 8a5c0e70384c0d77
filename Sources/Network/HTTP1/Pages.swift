import HTTP

/// The pages of a server. Called on the server's loop, so it must not block; it may suspend.
public protocol Pages: Sendable {
    /// Answers a GET, HEAD or POST request. The server removes the body of an answer to HEAD.
    func answer(_ request: Request) async -> Response
}

/// The limits for a caller of a server of pages.
public struct PageLimits: Sendable {
    public var connections: UInt32 = 32
    /// The length of a request body. Longer ones are refused with 413.
    public var bodyBytes = Request.bodyLimit
    /// From the beginning of a connection, or the end of its last answer, to the end of the next
    /// answer. Time that the handler needs does not count.
    public var timeout: Duration = .seconds(30)
    /// The time for making an answer.
    public var answer: Duration = .seconds(20)

    public init() {}
}
