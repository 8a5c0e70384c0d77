import CMicroHTTPD
import EventLoop
import HTTP
import Log

/// A request and its answer. Calls of libmicrohttpd and the answer of `Pages` change its state.
/// Each call returns to libmicrohttpd whether the connection continues.
final class PageExchange {
    private enum State {
        case receiving
        case answering
        /// The connection is suspended until the answer is ready.
        case waiting
        case ready(Response)
        case over
    }

    private let server: HTTP1Server
    private let handle: OpaquePointer
    private var request: Request
    private var state = State.receiving
    private var isTooLarge = false
    private var deadline: TimerID?
    private let connection: PageConnection
    /// The work of `Pages` on this request.
    private var work: Task<Void, Never>?

    init(_ server: HTTP1Server, _ handle: OpaquePointer, method: String, _ connection: PageConnection, _ fields: Fields)
    {
        self.server = server
        self.handle = handle
        self.connection = connection
        let target = connection.target
        let path = target.prefix { $0 != "?" }
        request = Request(
            method: method, path: String(path),
            query: path.endIndex == target.endIndex ? nil : String(target[path.endIndex...].dropFirst()),
            fields: fields, remote: connection.remote)
        connection.exchange = self
    }

    var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// Handles a complete head. If the head is refused, the body is never read.
    func begin() -> MHD_Result {
        if let refusal { return queue(refusal) }
        return .YES
    }

    func receive(_ part: UnsafeRawBufferPointer) {
        guard request.body.count + part.count <= server.limits.bodyBytes else {
            isTooLarge = true
            request.body = []
            return
        }
        if !isTooLarge { request.body.append(contentsOf: part) }
    }

    /// Continues when the request is complete, or when its answer is ready and the connection was
    /// resumed.
    func proceed() -> MHD_Result {
        switch state {
        case .receiving:
            if isTooLarge { return queue(tooLarge) }
            ask()
            if case .ready(let response) = state { return queue(response) }
            state = .waiting
            MHD_suspend_connection(handle)
            server.suspended(self)
            if server.pages.endsWithCaller { connection.watchCaller { [weak self] in self?.work?.cancel() } }
            return .YES
        case .ready(let response): return queue(response)
        case .answering, .waiting, .over: return .NO
        }
    }

    private func ask() {
        state = .answering
        deadline = server.loop.schedule(after: server.limits.answer) { [weak self] in
            guard let self else { return }
            deadline = nil
            answered(server.pages.answer(to: .unanswered))
        }
        let bound = LoopBound(self, on: server.loop)
        let (pages, request) = (server.pages, request)
        work = server.loop.spawnCancellable {
            let response = await pages.answer(request)
            bound.value.answered(response)
        }
    }

    /// Takes the first answer, from `Pages` or from the deadline. Later ones are ignored.
    func answered(_ response: Response) {
        switch state {
        case .answering: state = .ready(response)
        case .waiting:
            state = .ready(response)
            connection.unwatchCaller()
            MHD_resume_connection(handle)
            server.resumed(self)
        case .receiving, .ready, .over: return
        }
        if let deadline { server.loop.cancel(deadline) }
        deadline = nil
    }

    /// Records that the request is over for libmicrohttpd.
    func ended() {
        state = .over
        if let deadline { server.loop.cancel(deadline) }
        deadline = nil
        connection.unwatchCaller()
    }

    // MARK: Refusals before the body is read

    private var tooLarge: Response { server.pages.answer(to: .tooLarge(limit: server.limits.bodyBytes)) }

    private var refusal: Response? {
        if let refusal = server.pages.refusal(of: request, to: server.names) { return refusal }
        if let length = request.fields["content-length"], Int(length).map({ $0 > server.limits.bodyBytes }) ?? true {
            return tooLarge
        }
        return nil
    }

    // MARK: Answering

    private func queue(_ response: Response) -> MHD_Result {
        state = .over
        server.log.debug(
            "page.answered", [.method: request.method, .path: request.path, .status: response.status])
        let answer = response.body.withUnsafeBytes { body in
            MHD_create_response_from_buffer(
                body.count, UnsafeMutableRawPointer(mutating: body.baseAddress), .RESPMEM_MUST_COPY)
        }
        guard let answer else { return .NO }
        defer { MHD_destroy_response(answer) }
        // libmicrohttpd takes no empty value.
        for field in response.fields.all + server.pages.commonFields
        where !field.value.isEmpty && MHD_add_response_header(answer, field.name, field.value) != .YES {
            server.log.error("page.field", [.name: field.name])
            return .NO
        }
        return MHD_queue_response(handle, UInt32(response.status), answer)
    }
}
