import EventLoop
import HTTP

/// A request of ours on its way.
final class PendingRequest: BodySource {
    /// Nil once it has a stream: nghttp2 has taken what it needs.
    var request: ClientRequest?
    private var completion: ((Result<Response, RequestFailure>) -> Void)?
    var timer: TimerID?
    /// Nil while it waits for its turn.
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

    /// How it ends without an answer. The server acts on whole requests: what has not left to its end was not received.
    func failure(_ reason: String) -> RequestFailure { isSent ? .ambiguous(reason) : .notSent(reason) }

    /// Nobody wants to know any more.
    func forget() {
        completion = nil
        body = []
    }

    /// Once; later calls do nothing.
    func complete(_ result: Result<Response, RequestFailure>, on loop: EventLoop) {
        guard let completion else { return }
        self.completion = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        body = []
        completion(result)
    }
}
