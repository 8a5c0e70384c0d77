import HTTP

/// The pages of a server. They are called on the server's loop, so they must not block; they may
/// suspend.
public protocol Pages: Sendable {
    /// Answers a request that `refusal` has accepted. The server removes the body of an answer to
    /// HEAD.
    func answer(_ request: Request) async -> Response

    /// Refuses a request by its head, before its body is read; nil accepts it.
    func refusal(of head: Request, to names: LocalNames) -> Response?

    /// The answer for a fault that the server itself finds.
    func answer(to fault: PageFault) -> Response

    /// The fields that every answer gets.
    var commonFields: [Fields.Field] { get }

    /// Whether the task of `answer` is cancelled when its caller has closed the connection, or the
    /// direction to the server.
    var endsWithCaller: Bool { get }
}

/// A fault that an `HTTP1Server` finds.
public enum PageFault: Sendable {
    /// The body is longer than this limit.
    case tooLarge(limit: Int)
    /// `Pages` gave no answer in time, or the server stops.
    case unanswered
}

/// The rules for pages that a browser on this machine shows.
extension Pages {
    public func refusal(of head: Request, to names: LocalNames) -> Response? {
        guard ["GET", "HEAD", "POST"].contains(head.method) else {
            return .plain(
                405, "This server accepts only GET, HEAD and POST.\n", [Fields.Field("allow", "GET, HEAD, POST")])
        }
        let hosts = head.fields.values("host")
        guard hosts.count == 1, head.path.hasPrefix("/") else {
            return .plain(400, "The request must have one Host field and a path that begins with a slash.\n")
        }
        guard names.contain(host: hosts[0]) else {
            return .plain(421, "This server answers only requests from this machine. Use \(names.example).\n")
        }
        if head.method == "POST", !head.fields.values("origin").allSatisfy(names.contain(origin:)) {
            return .plain(403, "This server does not accept POST from pages of other sites.\n")
        }
        return nil
    }

    public func answer(to fault: PageFault) -> Response {
        switch fault {
        case .tooLarge(let limit): .plain(413, "The body is too large. It may have at most \(limit) bytes.\n")
        case .unanswered: .plain(503, "The server cannot answer at the moment. Try again later.\n")
        }
    }

    /// No cache may store an answer, and no browser may guess its type.
    public var commonFields: [Fields.Field] {
        [Fields.Field("cache-control", "no-store"), Fields.Field("x-content-type-options", "nosniff")]
    }

    public var endsWithCaller: Bool { false }
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
