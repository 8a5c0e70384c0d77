import Domain
import HTTP
import Log
import Relay
import Synchronization
import World

/// The line of one request in the access log, and its count in the metrics. It is written when the
/// request is answered, or when its caller is gone (`deinit`).
final class AccessLogLine: Sendable {
    let id: String
    /// The trace that the caller named; nil if it named none.
    let trace: TraceParent?
    private let method: String?
    private let route: String
    private let started: Instant
    private let hasCertificate: Bool
    /// The language of the texts in the answer.
    let language: TextLanguage
    let api: API
    private var time: any TimeSource { api.time }
    private var log: Log { api.log }
    private let state = Mutex(State())

    /// The caller, as far as the line names it. A line lives for as long as its request is held, so
    /// it does not keep the whole caller.
    private enum Name {
        case anyone
        case website(String)
        case phone(DeviceID)
    }

    private struct State {
        var caller = Name.anyone
        var isHeld = false
        var hasEnded = false
    }

    init(
        id: String, trace: TraceParent? = nil, method: String?, route: String, hasCertificate: Bool,
        language: TextLanguage = .english, of api: API
    ) {
        self.id = id
        self.trace = trace
        self.method = method
        self.route = route
        self.hasCertificate = hasCertificate
        self.language = language
        self.api = api
        started = api.time.instant()
    }

    func identified(_ caller: Caller) {
        let name: Name =
            switch caller {
            case .website(let caller): .website(caller.name)
            case .phone(let caller): .phone(caller.id)
            case .anyone: .anyone
            }
        state.withLock { $0.caller = name }
    }

    func held() {
        state.withLock { $0.isHeld = true }
        log.debug("request.held", [.route: route])
    }

    /// Whether the deadline has passed, so that the caller has got its answer already.
    var isLate: Bool { time.instant() - started >= api.settings.deadline }

    /// The answer of a request that has no other one at its deadline.
    func late() -> Response { APIResponse(.unavailable, in: language).response(to: id) }

    func ended(_ status: Int) {
        let last = state.withLock { state in
            defer { state.hasEnded = true }
            return state
        }
        let taken = time.instant() - started
        // The caller got `unavailable` at the deadline. This line reports how the work ended
        // afterwards.
        let isLate = !last.isHeld && taken >= api.settings.deadline
        write(last, taken, status: status, outcome: isLate ? "late" : nil)
    }

    deinit {
        let last = state.withLock { $0 }
        if !last.hasEnded { write(last, time.instant() - started, status: nil, outcome: "gone") }
    }

    private func write(_ state: State, _ taken: Duration, status: Int?, outcome: String?) {
        api.metrics.ended(method, route, status: status, taken: state.isHeld ? nil : taken)
        guard isWritten(state, status) else { return }
        if Health.isCheck(route) {
            log.debug("request", fields(state, taken, status, outcome))
        } else {
            log.info("request", fields(state, taken, status, outcome))
        }
    }

    private func fields(_ state: State, _ taken: Duration, _ status: Int?, _ outcome: String?) -> LogFields {
        var website: String?
        var device: String?
        switch state.caller {
        case .website(let name): website = name
        case .phone(let id): device = id.text
        case .anyone: break
        }
        return [
            .request: id, .trace: trace?.trace, .method: method, .route: route, .status: status, .outcome: outcome,
            .milliseconds: taken.wholeMilliseconds, .website: website, .device: device,
        ]
    }

    /// Whether the line is written. Refused callers without an identity share a few lines each
    /// second (`RequestSampling`). Health checks are logged only at level debug.
    private func isWritten(_ state: State, _ status: Int?) -> Bool {
        guard case .anyone = state.caller, !Health.isCheck(route), (status ?? 499) >= 400 else { return true }
        return api.sampled.admit(
            RequestSampling.Class(status: status, hasCertificate: hasCertificate), at: time.instant())
    }
}
