import EventLoop
import HTTP
import HTTP2

/// One provider's connection: gives every request what the desk says it gets. Lives on its loop.
final class AppleConnection: ConnectionController {
    private let connection: ServerConnection
    let number: Int
    private let responder: PushResponder
    private let hasEnded: () -> Void
    /// Streams with whose push nothing has been done yet.
    private var undecided: Set<Int32> = []
    private var newest: Int32 = 0
    private var limits: StreamLimitSchedule?
    private var isProved = false

    init(_ connection: ServerConnection, number: Int, responder: PushResponder, hasEnded: @escaping () -> Void) {
        self.connection = connection
        self.number = number
        self.responder = responder
        self.hasEnded = hasEnded
    }

    // MARK: Streams and their limit

    /// Ahead of the SETTINGS.
    func begin(_ limits: StreamLimits?) {
        guard let limits else { return }
        self.limits = StreamLimitSchedule(limits)
        if case .some(let first) = self.limits?.limit { connection.streamLimit = first }
        time()
    }

    /// Later: from the beginning of what is new.
    func change(_ faults: FaultPlan) {
        limits = faults.streams.map { StreamLimitSchedule($0) }
        if isProved { _ = limits?.prove() }
        announce()
        if faults.frozen.contains(number) { freeze() }
    }

    private func announce() {
        guard let limit = limits?.limit else { return }
        connection.announce(streams: limit ?? .max)
        time()
    }

    /// A step that ends by itself.
    private func time() {
        guard let step = limits?.step, let duration = limits?.duration else { return }
        connection.loop.schedule(after: duration) { [weak self] in
            guard let self, limits?.step == step else { return }
            if limits?.advance() == true { announce() }
        }
    }

    func announce(streams: UInt32) { connection.announce(streams: streams) }
    func freeze() { connection.freeze() }
    func cut() { connection.cut() }

    // MARK: ConnectionController

    func closed(stream: Int32) { undecided.remove(stream) }

    func ended() { hasEnded() }

    func handle(_ request: Request, stream: Int32) -> Reply? {
        newest = max(newest, stream)
        defer { if limits?.count() == true { announce() } }
        switch responder.judge(request) {
        case .wrong(let reason):
            record(nil, request, .refused(reason), reason.words, stream)
            // Those about the path come before anybody looks who it is.
            if ![403, 404, 405].contains(reason.status) { prove() }
            return .now(responder.refusal(reason, id: request.fields["apns-id"]))
        case .right(let push, let answer):
            record(push, request, answer.outcome, answer.words, stream)
            return give(answer, push, stream).map { .now($0) }
        }
    }

    private func record(
        _ push: ReceivedPush?, _ request: Request, _ outcome: RecordedRequest.Outcome, _ words: String, _ stream: Int32
    ) {
        responder.record(
            RecordedRequest(
                push: push, path: request.path, outcome: outcome, answer: words, connection: number, stream: stream))
    }

    /// The provider's token, or certificate, was found right.
    private func prove() {
        isProved = true
        if limits?.prove() == true { announce() }
    }

    // MARK: What requests get

    /// Nil: no answer, or not yet.
    private func give(_ answer: ScriptedAnswer, _ push: ReceivedPush, _ stream: Int32) -> Response? {
        switch answer {
        case .accept:
            responder.accept(push, isAnswered: true)
            prove()
            return responder.acceptance(push)
        case .refuse(let reason, let timestamp, let retryAfter):
            if reason.status != 403 { prove() }
            return responder.refusal(reason, id: push.id, timestamp: timestamp, retryAfter: retryAfter)
        case .respond(let response): return response
        case .silence: undecided.insert(stream)
        case .lost: responder.accept(push, isAnswered: false)
        case .reset(let code, let accepts):
            if accepts { responder.accept(push, isAnswered: false) }
            connection.reset(stream, code)
        case .cut(let accepts):
            if accepts { responder.accept(push, isAnswered: false) }
            connection.cut()
        case .freeze(let accepts):
            if accepts { responder.accept(push, isAnswered: false) }
            connection.freeze()
        case .goAway(let replays): return goAway(replays, push, stream)
        case .after(let delay, let then):
            undecided.insert(stream)
            connection.loop.schedule(after: delay) { [weak self] in
                guard let self, undecided.remove(stream) != nil else { return }
                if let response = give(then, push, stream) { connection.answer(stream, response) }
            }
        }
        return nil
    }

    private func goAway(_ replays: Int, _ push: ReceivedPush, _ stream: Int32) -> Response? {
        undecided.insert(stream)
        let last = goAway(replays: replays, from: stream)
        guard undecided.remove(stream) != nil else { return nil }
        guard replays > 0 else { return give(.accept, push, stream) }
        // There are answered streams above it. That it was not processed can be said in another way.
        return last >= stream ? give(.reset(.refusedStream), push, stream) : nil
    }

    /// Of the streams up to that one (nil: of all) so many were not processed, and none above it. Returns the last one that
    /// was, or will be.
    @discardableResult
    func goAway(replays: Int, from stream: Int32? = nil) -> Int32 {
        var (last, left) = (newest, replays)
        while left > 0, undecided.remove(last) != nil {
            if last <= stream ?? newest { left -= 1 }
            last -= 2
        }
        connection.goAway(lastStream: max(0, last))
        return last
    }
}
