/// Answers requests. Called on the loop that owns the connection; must not block.
public protocol Handler: Sendable {
    func handle(_ request: Request) -> Reply

    /// The response to a request with this fault. Such a request does not reach `handle`.
    /// - Parameter fields: the header fields that were read before the fault.
    /// - Parameter hasCertificate: whether the client has a verified certificate.
    func refuse(_ fault: RequestFault, _ fields: Fields, hasCertificate: Bool) -> Response
}

extension Handler {
    public func refuse(_ fault: RequestFault, _ fields: Fields, hasCertificate: Bool) -> Response {
        Response(status: fault.status)
    }
}

/// The answer to a request. A held request is a value, too: no task waits for it.
public enum Reply: Sendable {
    case now(Response)
    /// The work starts at once on the loop. If it has not ended after `deadline`, the response that
    /// `late` makes is sent and its result is dropped. The work itself continues, because a change
    /// that was handed to the store is never cancelled.
    case later(deadline: Duration, late: @Sendable () -> Response, work: @Sendable () async -> Outcome)
}

public enum Outcome: Sendable {
    case response(Response)
    case held(Hold)
}

/// A request that waits for an event, at most for `duration`.
public struct Hold: Sendable {
    public let duration: Duration
    /// The owner of the request. If many holds end at once, the owners take turns.
    public let owner: String
    public let wait: any Wait
    /// Makes the answer after the event or at the end of the duration, under the same deadline as
    /// the work before it. If the event changed nothing for this request, it may hold the request
    /// again for the remaining time.
    public let finish: @Sendable () async -> Outcome

    public init(
        duration: Duration, owner: String = "", wait: any Wait, finish: @escaping @Sendable () async -> Outcome
    ) {
        self.duration = duration
        self.owner = owner
        self.wait = wait
        self.finish = finish
    }
}

/// The event that a held request waits for. If it occurred before `arm`, `wake` is called at once.
public protocol Wait: AnyObject, Sendable {
    /// Calls `wake` at most once, from any thread.
    func arm(_ wake: @escaping @Sendable () -> Void)
    /// Ends the wait, because the duration is over or the client is gone.
    func cancel()
}
