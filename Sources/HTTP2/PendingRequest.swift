import EventLoop
import HTTP

/// A request of ours on its way.
final class PendingRequest: BodySource {
    let request: ClientRequest
    private var completion: ((Result<Response, RequestFailure>) -> Void)?
    var timer: TimerID?
    /// Nil while it waits for its turn.
    var stream: Int32?
    var head: HeaderBlock?
    var body: [UInt8] = []

    init(_ request: ClientRequest, completion: @escaping (Result<Response, RequestFailure>) -> Void) {
        self.request = request
        self.completion = completion
        super.init()
        outgoing = request.body
    }

    var isCompleted: Bool { completion == nil }

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
