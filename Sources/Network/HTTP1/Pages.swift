import HTTP

/// What a server of pages shows. Asked on the server's loop, so it must not block; it may wait.
public protocol Pages: Sendable {
    /// Requests are GET, HEAD and POST; what is answered to HEAD loses its body by itself.
    func answer(_ request: Request) async -> Response
}

/// What a caller may ask of a server of pages, and for how long.
public struct PageLimits: Sendable {
    public var connections: UInt32 = 32
    public var bodyBytes = 65_536
    /// From the beginning of a connection, or the end of its last answer, to the end of the next one, whoever is slow.
    public var timeout: Duration = .seconds(30)
    /// For making an answer.
    public var answer: Duration = .seconds(20)

    public init() {}
}
