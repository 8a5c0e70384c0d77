import Bytes
import EventLoop
import HTTP
import JSON
import Log
import Synchronization
import World

/// Checks requests and selects their answers. It knows no connections: `ProviderConnection` carries
/// the answers out.
final class PushResponder: Handler {
    private struct State {
        var rules: any ServiceRules
        var script = Script()
        var faults = FaultPlan()
        var counts = RuleCounts()
        var receptions = AnswerSequence<ConnectionBehavior>()
        var requests = 0
        var accepted = 0
        var deliveries = DeliveryCount()
    }

    /// The result of the checks of one request.
    enum Judgement {
        case wrong(RefusalReason)
        case right(ReceivedPush, ScriptedAnswer)
        /// A request that is no push has this answer.
        case other(Response)
    }

    let pushes: Mailbox<ReceivedPush>
    let requests: Mailbox<RecordedRequest>
    let loop: EventLoop
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
        rules: any ServiceRules, loop: EventLoop, keeping: RecordingLimits,
        randomness: any Randomness, log: Log, listeners: Listeners
    ) {
        self.loop = loop
        self.keeping = keeping
        self.randomness = randomness
        self.log = log
        self.listeners = listeners
        state = Mutex(State(rules: rules))
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
            state.counts = RuleCounts(faults.rules)
        }
    }

    func setConnectionBehavior(_ receptions: [ConnectionBehavior], repeatsLast: Bool) {
        state.withLock { $0.receptions = AnswerSequence(receptions, repeatsLast: repeatsLast) }
    }

    func nextBehavior() -> ConnectionBehavior { state.withLock { $0.receptions.next() } ?? .serve }

    // MARK: Requests

    func judge(_ request: Request) -> Judgement {
        let now = loop.time.now()
        return state.withLock { state in
            switch state.rules.look(at: request, now: now) {
            case .wrong(let reason): return .wrong(reason)
            case .other(let response): return .other(response)
            case .right(let push):
                let answer = state.script.take(for: push.deviceToken) ?? state.counts.next() ?? .accept
                let latency = state.faults.latency
                return .right(push, latency > .zero ? .after(latency, answer) : answer)
            }
        }
    }

    /// Changes what the service knows, such as its access tokens.
    func withRules<Value: Sendable>(_ body: (inout any ServiceRules) -> Value) -> Value {
        state.withLock { body(&$0.rules) }
    }

    /// Answers a request without a connection. Only a plain answer is possible then, so scripted
    /// answers do not apply.
    func handle(_ request: Request) -> Reply {
        switch judge(request) {
        case .wrong(let reason): return .now(refusal(reason, id: request.fields["apns-id"]))
        case .other(let response): return .now(response)
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

    func acceptance(_ push: ReceivedPush) -> Response { state.withLock { $0.rules.acceptance(push) } }

    /// Makes a refusal as the service writes it.
    ///
    /// - Parameter id: the request's `apns-id`. If it is missing or invalid, Apple's answer has a new
    ///   one.
    func refusal(
        _ reason: RefusalReason, id: String?, timestamp: Timestamp? = nil, retryAfter: Duration? = nil
    ) -> Response {
        let time = timestamp ?? loop.time.now()
        var response = state.withLock {
            $0.rules.refusal(reason, id: id, timestamp: time, randomness)
        }
        if let retryAfter { response.fields.add("retry-after", String(retryAfter.components.seconds)) }
        return response
    }
}
