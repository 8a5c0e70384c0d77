import Bytes
import EventLoop
import HTTP
import JSON
import Log
import Synchronization
import World

/// Judges requests and answers them. It knows no socket.
final class AppleDesk: Handler {
    private struct State {
        var tokens: ProviderTokenCheck
        var script = Script()
        var accepted = 0
    }

    let pushes: Mailbox<ReceivedPush>
    let requests: Mailbox<RecordedRequest>
    private let check: AppleCheck
    private let loop: EventLoop
    private let randomness: any Randomness
    private let log: Log
    private let onPush: (@Sendable (ReceivedPush) -> Void)?
    private let state: Mutex<State>

    init(
        check: AppleCheck, tokens: ProviderTokenCheck, loop: EventLoop, randomness: any Randomness, log: Log,
        onPush: (@Sendable (ReceivedPush) -> Void)?
    ) {
        self.check = check
        self.loop = loop
        self.randomness = randomness
        self.log = log
        self.onPush = onPush
        state = Mutex(State(tokens: tokens))
        pushes = Mailbox(loop: loop)
        requests = Mailbox(loop: loop)
    }

    var acceptedCount: Int { state.withLock { $0.accepted } }

    func script(_ prefix: String, _ answers: [ScriptedAnswer], repeatsLast: Bool) {
        state.withLock { $0.script.set(prefix, answers, repeatsLast: repeatsLast) }
    }

    func handle(_ request: Request) -> Reply {
        switch judge(request) {
        case .wrong(let reason):
            record(request, nil, .refused(reason))
            return .now(answer(request, reason))
        case .right(let push):
            return reply(to: request, push, state.withLock { $0.script.take(for: push.deviceToken) }, after: .zero)
        }
    }

    func tooLarge() -> Response { answer(nil, .payloadTooLarge) }

    private func judge(_ request: Request) -> AppleCheck.Finding {
        // The path and the method come first, whoever asks.
        let finding = check.look(at: request, providerToken: nil)
        switch finding {
        case .wrong(.badPath), .wrong(.methodNotAllowed): return finding
        default: break
        }
        switch state.withLock({ $0.tokens.look(at: request, now: loop.time.now()) }) {
        case .wrong(let reason): return .wrong(reason)
        case .right(let token): return check.look(at: request, providerToken: token)
        }
    }

    private func reply(
        to request: Request, _ push: ReceivedPush, _ scripted: ScriptedAnswer, after delay: Duration
    ) -> Reply {
        let outcome: RecordedRequest.Outcome
        var response: Response?
        switch scripted {
        case .after(let further, let then): return reply(to: request, push, then, after: delay + further)
        case .accept: (outcome, response) = (.accepted, accepted(request))
        case .refuse(let reason, let timestamp):
            (outcome, response) = (.refused(reason), answer(request, reason, timestamp))
        case .respond(let given): (outcome, response) = (.other, given)
        case .silence: (outcome, response) = (.other, nil)
        }
        record(request, push, outcome)
        guard let response else { return silence }
        guard delay > .zero else { return .now(response) }
        return .later(deadline: delay + .seconds(60), late: response) { [loop] in
            await loop.sleep(for: delay)
            return .response(response)
        }
    }

    /// Work that goes on, and not a held request: a server that drains answers those.
    private var silence: Reply {
        let nothing = Response(status: 500)
        let day = Duration.seconds(24 * 3600)
        return .later(deadline: day, late: nothing) { [loop] in
            await loop.sleep(for: day)
            return .response(nothing)
        }
    }

    private func record(_ request: Request, _ push: ReceivedPush?, _ outcome: RecordedRequest.Outcome) {
        if case .refused(let reason) = outcome {
            log.info("fake_apns.refused", [.status: reason.status, .reason: reason.rawValue])
        }
        requests.put(RecordedRequest(push: push, path: request.path, outcome: outcome))
        guard outcome == .accepted, let push else { return }
        log.info("fake_apns.accepted", [.challenge: push.challenge])
        state.withLock { $0.accepted += 1 }
        pushes.put(push)
        onPush?(push)
    }

    private func accepted(_ request: Request) -> Response {
        Response(status: 200, fields: Fields([Fields.Field("apns-id", id(of: request))]))
    }

    private func answer(_ request: Request?, _ reason: AppleReason, _ timestamp: Timestamp? = nil) -> Response {
        var body: JSONObject = ["reason": .string(reason.rawValue)]
        if reason.status == 410 {
            body["timestamp"] = .integer((timestamp ?? loop.time.now()).milliseconds)
        }
        return Response(
            status: reason.status,
            fields: Fields([
                Fields.Field("apns-id", id(of: request)), Fields.Field("content-type", "application/json"),
            ]),
            body: JSONWriter.write(body))
    }

    /// The request's own, or a new one where it brought none.
    private func id(of request: Request?) -> String {
        if let id = request?.fields["apns-id"], AppleCheck.isUUID(id) { return id }
        var rest = Substring(Hex.encode(randomness.bytes(16)))
        return [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }.joined(separator: "-")
    }
}
