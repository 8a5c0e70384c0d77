import EventLoop
import HTTP

/// A request of a client that has no result yet.
final class PendingRequest: BodySource {
    /// The request; nil once it has a stream, because nghttp2 has copied what it needs.
    var request: ClientRequest?
    private var completion: ((Result<Response, RequestFailure>) -> Void)?
    var timer: TimerID?
    /// The number of its stream; nil while it waits for one.
    var stream: Int32?
    var head: HeaderBlock?
    var body: [UInt8] = []

    init(
        _ request: ClientRequest?, body: [UInt8], completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) {
        self.request = request
        self.completion = completion
        super.init()
        outgoing = body
    }

    var isCompleted: Bool { completion == nil }

    /// The failure of this request. Servers act on whole requests, so a request that was not fully
    /// sent counts as not sent.
    func failure(_ reason: String) -> RequestFailure { isSent ? .ambiguous(reason) : .notSent(reason) }

    /// Drops the completion, because the caller needs no result any more.
    func forget() {
        completion = nil
        body = []
    }

    /// Completes the request once. Later calls do nothing.
    func complete(_ result: Result<Response, RequestFailure>, on loop: EventLoop) {
        guard let completion else { return }
        self.completion = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        body = []
        completion(result)
    }
}
