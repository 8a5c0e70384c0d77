/// Answers requests. Called on the loop that owns the connection; must not block.
public protocol Handler: Sendable {
    func handle(_ request: Request) -> Reply

    /// What a request gets whose body is over the limit; nothing of it reached `handle`.
    func tooLarge() -> Response
}

/// How a request is answered. A held request is a value too: no task waits for it.
public enum Reply: Sendable {
    case now(Response)
    /// Started at once on the loop. If it has not ended after `deadline`, `late` is answered and its result is dropped
    /// (the work itself goes on: what was handed to the store is never cancelled).
    case later(deadline: Duration, late: Response, work: @Sendable () async -> Outcome)
}

public enum Outcome: Sendable {
    case response(Response)
    case held(Hold)
}

/// A request that waits for something to happen, at most for `duration`.
public struct Hold: Sendable {
    public let duration: Duration
    /// The owner of the request: if many holds end at once, each owner has its turn.
    public let owner: String
    public let wait: any Wait
    /// Makes the answer, once it happened or the time is over. Under the same deadline as the work before it. Where what
    /// happened is no news, it may hold the request again, for what is left of its time.
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

/// The thing waited for. It may have happened before it is armed: then `wake` is called at once.
public protocol Wait: Sendable {
    /// Calls `wake` at most once, from any thread.
    func arm(_ wake: @escaping @Sendable () -> Void)
    /// Nobody waits any more: the time was over, or the client went away.
    func cancel()
}
