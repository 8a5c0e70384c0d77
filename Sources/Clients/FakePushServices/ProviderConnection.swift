import EventLoop
import HTTP
import HTTP2

/// A provider's connection, which gives each request the answer that `PushResponder` selects. It
/// must be used on its loop only.
///
/// Invariant: `undecided` holds only streams whose push was neither accepted nor refused. A GOAWAY
/// with replays declares only these unprocessed, because a sender repeats their pushes at once. If
/// it declared an accepted push unprocessed, the phone would get two notifications.
final class ProviderConnection: ConnectionController {
    private let connection: ServerConnection
    let number: Int
    private let responder: PushResponder
    private let hasEnded: () -> Void
    /// Streams whose push has not been processed yet.
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

    /// Applies the stream limits before the first SETTINGS frame is sent.
    func begin(_ limits: StreamLimits?) {
        guard let limits else { return }
        self.limits = StreamLimitSchedule(limits)
        if case .some(let first) = self.limits?.limit { connection.streamLimit = first }
        time()
    }

    /// Applies a new fault plan. Its stream limits start with their first phase.
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

    /// Schedules the end of a phase that has a duration.
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
            // The method and path (404, 405) are checked before the provider is authenticated.
            if ![401, 403, 404, 405].contains(reason.status) { prove() }
            return .now(responder.refusal(reason, id: request.fields["apns-id"]))
        case .other(let response):
            record(nil, request, .other, String(response.status), stream)
            return .now(response)
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

    /// Records that the provider's token or certificate is valid.
    private func prove() {
        isProved = true
        if limits?.prove() == true { announce() }
    }

    // MARK: Answers

    /// Carries out a scripted answer.
    ///
    /// - Returns: the response; nil if there is none, or none yet.
    private func give(_ answer: ScriptedAnswer, _ push: ReceivedPush, _ stream: Int32) -> Response? {
        switch answer {
        case .accept:
            responder.accept(push, isAnswered: true)
            prove()
            return responder.acceptance(push)
        case .refuse(let reason, let timestamp, let retryAfter):
            if ![401, 403].contains(reason.status) { prove() }
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
        // Streams with a higher number were answered, so GOAWAY cannot declare this one
        // unprocessed. A RST_STREAM with REFUSED_STREAM declares the same.
        return last >= stream ? give(.reset(.refusedStream), push, stream) : nil
    }

    /// Sends GOAWAY, which declares streams unprocessed: `replays` of the streams up to `stream`,
    /// and all streams above.
    ///
    /// - Parameters:
    ///   - replays: the largest number of unprocessed streams. Fewer are declared if an answered
    ///     stream comes between them.
    ///   - stream: the highest stream that counts as a replay; nil for the newest.
    /// - Returns: the last stream that was or will be processed.
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
