import Bytes
import EventLoop
import HTTP
import JSON
import Log
import Synchronization
import World

/// Checks requests and selects their answers. It knows no connections: `AppleConnection` carries
/// the answers out.
final class PushResponder: Handler {
    private struct State {
        var tokens: ProviderTokenCheck
        var script = Script()
        var faults = FaultPlan()
        var rules = RuleCounts()
        var receptions = AnswerSequence<ConnectionBehavior>()
        var requests = 0
        var accepted = 0
        var deliveries = DeliveryCount()
    }

    /// The result of the checks of one request.
    enum Judgement {
        case wrong(RefusalReason)
        case right(ReceivedPush, ScriptedAnswer)
    }

    let pushes: Mailbox<ReceivedPush>
    let requests: Mailbox<RecordedRequest>
    let loop: EventLoop
    private let check: AppleCheck
    private let keeping: RecordingLimits
    private let randomness: any Randomness
    private let log: Log
    let listeners: Listeners
    private let state: Mutex<State>

    /// Observers, which are called at once and on the loop.
    struct Listeners: Sendable {
        var push: (@Sendable (ReceivedPush) -> Void)?
        var request: (@Sendable (RecordedRequest) -> Void)?
        var connection: (@Sendable (ConnectionEvent) -> Void)?
    }

    init(
        check: AppleCheck, tokens: ProviderTokenCheck, loop: EventLoop, keeping: RecordingLimits,
        randomness: any Randomness, log: Log, listeners: Listeners
    ) {
        self.check = check
        self.loop = loop
        self.keeping = keeping
        self.randomness = randomness
        self.log = log
        self.listeners = listeners
        state = Mutex(State(tokens: tokens))
        pushes = Mailbox(loop: loop, capacity: keeping.newest)
        requests = Mailbox(loop: loop, capacity: keeping.newest)
    }

    // MARK: State and settings

    var requestCount: Int { state.withLock { $0.requests } }
    var acceptedCount: Int { state.withLock { $0.accepted } }
    var deliveries: Deliveries { state.withLock { $0.deliveries.result } }
    var faults: FaultPlan { state.withLock { $0.faults } }

    func script(_ prefix: String, _ answers: [ScriptedAnswer], repeatsLast: Bool) {
        state.withLock { $0.script.set(prefix, answers, repeatsLast: repeatsLast) }
    }

    func replaceScripts(_ scripts: [(prefix: String, answers: [ScriptedAnswer])]) {
        state.withLock { state in
            state.script = Script()
            for (prefix, answers) in scripts { state.script.set(prefix, answers, repeatsLast: true) }
        }
    }

    func injectFaults(_ faults: FaultPlan) {
        state.withLock { state in
            state.faults = faults
            state.rules = RuleCounts(faults.rules)
        }
    }

    func setConnectionBehavior(_ receptions: [ConnectionBehavior], repeatsLast: Bool) {
        state.withLock { $0.receptions = AnswerSequence(receptions, repeatsLast: repeatsLast) }
    }

    func nextBehavior() -> ConnectionBehavior { state.withLock { $0.receptions.next() } ?? .serve }

    // MARK: Requests

    func judge(_ request: Request) -> Judgement {
        if let reason = check.wrongAddress(request) { return .wrong(reason) }
        let token: String?
        switch state.withLock({ $0.tokens.look(at: request, now: loop.time.now()) }) {
        case .wrong(let reason): return .wrong(reason)
        case .right(let found): token = found
        }
        switch check.look(at: request, providerToken: token) {
        case .wrong(let reason): return .wrong(reason)
        case .right(let push):
            return state.withLock { state in
                let answer = state.script.take(for: push.deviceToken) ?? state.rules.next() ?? .accept
                let latency = state.faults.latency
                return .right(push, latency > .zero ? .after(latency, answer) : answer)
            }
        }
    }

    /// Answers a request without a connection. Only a plain answer is possible then, so scripted
    /// answers do not apply.
    func handle(_ request: Request) -> Reply {
        switch judge(request) {
        case .wrong(let reason): return .now(refusal(reason, id: request.fields["apns-id"]))
        case .right(let push, _):
            accept(push, isAnswered: true)
            return .now(acceptance(push))
        }
    }

    func refuse(_ fault: RequestFault, _ fields: Fields, hasCertificate: Bool) -> Response {
        fault == .bodySize ? refusal(.payloadTooLarge, id: nil) : Response(status: fault.status)
    }

    func record(_ request: RecordedRequest) {
        if case .refused(let reason) = request.outcome {
            log.info("fake_apns.refused", [.status: reason.status, .reason: reason.rawValue])
        }
        state.withLock { $0.requests += 1 }
        requests.put(request)
        listeners.request?(request)
    }

    func accept(_ push: ReceivedPush, isAnswered: Bool) {
        log.info("fake_apns.accepted", [.challenge: push.challenge])
        state.withLock { state in
            state.accepted += 1
            if keeping.deliveries { state.deliveries.add(push.id, isAnswered: isAnswered) }
        }
        pushes.put(push)
        listeners.push?(push)
    }

    // MARK: Answers

    func acceptance(_ push: ReceivedPush) -> Response {
        Response(status: 200, fields: Fields([Fields.Field("apns-id", push.id)]))
    }

    /// Makes a refusal as Apple writes it.
    ///
    /// - Parameter id: the request's `apns-id`. If it is missing or invalid, the answer has a new
    ///   one.
    func refusal(
        _ reason: RefusalReason, id: String?, timestamp: Timestamp? = nil, retryAfter: Duration? = nil
    ) -> Response {
        var body: JSONObject = ["reason": .string(reason.rawValue)]
        if reason.status == 410 {
            body["timestamp"] = .integer((timestamp ?? loop.time.now()).milliseconds)
        }
        var fields = [
            Fields.Field("apns-id", id.flatMap { AppleCheck.isUUID($0) ? $0 : nil } ?? newID()),
            Fields.Field("content-type", "application/json"),
        ]
        if let retryAfter { fields.append(Fields.Field("retry-after", String(retryAfter.components.seconds))) }
        return Response(status: reason.status, fields: Fields(fields), body: JSONWriter.write(body))
    }

    private func newID() -> String {
        var rest = Substring(Hex.encode(randomness.bytes(16)))
        return [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }.joined(separator: "-")
    }
}
