import EventLoop
import Log
import Metrics
import Relay
import Storage
import Synchronization
import World

/// Writes the heads of all writers of the audit to a place outside of the store, so that nobody can
/// delete the end of a chain without notice (docs/operators/audit.md).
///
/// Invariant: a head is written once, when it is new since the last round. After a start, when a new
/// file has begun, and once a day at a syslog service, all heads are written. No event loop waits for
/// the place, and no task waits for it longer than `limit`.
///
/// Failures: the place cannot be written, or hangs. The log says so, and the next round tries the same
/// heads again. The gauge shows since when.
///
/// `AuditHeadsFileTests.swift` and `AuditHeadsSyslogTests.swift` test it.
final class AuditHeadsExport: Sendable {
    static let pause = Duration.seconds(5)
    /// The longest wait for the place.
    static let limit = Duration.seconds(2)
    /// The time after which a syslog service gets all heads again: nobody knows when its files begin.
    private static let repetition = Duration.seconds(86_400)

    fileprivate enum Outcome: Sendable { case written, began, failed(String) }

    private struct State {
        var isFailing = false
        /// Whether the worker has not ended its last write.
        var isBusy = false
        /// The last moment at which all heads were outside of the store.
        var complete: Instant
        /// The time of the next round with all heads; nil if only a new file needs them.
        var next: Instant?
    }

    private let sink: any AuditHeadsSink
    private let feed: AuditHeadFeed
    private let log: Log
    /// Records a fault of the store in the audit.
    private let record: @Sendable (AuditHeadFeed.Fault) async -> Void
    private let worker: WorkerThread
    private let time: any TimeSource
    private let state: Mutex<State>

    /// Opens the place that the settings name; nil if they name none. A file must be writable now, unless
    /// it hangs: then the relay starts, and the heads stay in the store until the file answers. A syslog
    /// service may start later.
    static func open(
        _ settings: Settings, _ store: Store, time: any TimeSource = SystemTime(), log: Log,
        record: @escaping @Sendable (AuditHeadFeed.Fault) async -> Void = { _ in }
    ) throws(Failure) -> AuditHeadsExport? {
        guard let sink = settings.auditHeadsSink else { return nil }
        do {
            let isReached = sink is AuditHeadsFile ? try begin(sink) : true
            let feed = AuditHeadFeed(store, time: time)
            let export = AuditHeadsExport(
                sink, feed, worker: try WorkerThread(name: "audit-heads"), time: time, log: log, record: record)
            if !isReached { _ = export.note(late(sink)) }
            return export
        } catch {
            throw Failure(
                .failed, "audit.heads: \((error as? AuditHeadsFault)?.text ?? "\(error)")",
                next: "Create its directory, and let the account of the relay write to it.")
        }
    }

    /// Begins the file. Returns false if it hangs.
    private static func begin(_ sink: any AuditHeadsSink) throws(AuditHeadsFault) -> Bool {
        let result = BoundedWork.run("audit-heads", within: limit) {
            Result { () throws(AuditHeadsFault) in try sink.write([]) }
        }
        guard let result else { return false }
        _ = try result.get()
        return true
    }

    private static func late(_ sink: any AuditHeadsSink) -> String {
        "\(sink.name): the write has not ended within \(limit.components.seconds) s"
    }

    private init(
        _ sink: any AuditHeadsSink, _ feed: AuditHeadFeed, worker: WorkerThread, time: any TimeSource, log: Log,
        record: @escaping @Sendable (AuditHeadFeed.Fault) async -> Void
    ) {
        self.sink = sink
        self.feed = feed
        self.worker = worker
        self.time = time
        self.log = log
        self.record = record
        let now = time.instant()
        state = Mutex(State(complete: now, next: sink is AuditHeadsFile ? nil : now + Self.repetition))
    }

    /// Registers the gauge of the age of the heads.
    func show(in registry: Registry) {
        registry.gauge(
            "twoefay_audit_heads_age_seconds",
            "Seconds since all heads of the audit were last outside of the store (audit.heads)."
        ) { [self] in (time.instant() - state.withLock { $0.complete }).components.seconds }
    }

    /// Writes the heads that are new. It must be called on a loop.
    func append() async {
        repeatIfDue()
        do throws(StoreFailure) {
            for fault in try await feed.round(write) {
                log.error("audit.tampered", [.row: fault.row, .reason: fault.reason])
                await record(fault)
            }
            let now = time.instant()
            state.withLock { state in if !state.isFailing { state.complete = now } }
        } catch {
            // The lane reports a store that does not answer. An answer that cannot be read is a fault.
            if case .internal(let text) = error { log.error("audit.heads_unread", [.error: text]) }
        }
    }

    func close() {
        worker.stop()
        worker.join(within: Self.limit)
    }

    private func repeatIfDue() {
        let now = time.instant()
        let isDue = state.withLock { state in
            guard let next = state.next, now >= next else { return false }
            state.next = now + Self.repetition
            return true
        }
        if isDue { feed.beginAgain() }
    }

    private func write(_ heads: [AuditHead]) async -> Bool {
        var problem: String?
        switch await outcome(heads) {
        case .written: break
        case .began: feed.beginAgain()
        case .failed(let text): problem = text
        }
        return note(problem)
    }

    /// Logs the first failure, and the end of failures. Returns whether the heads are written.
    private func note(_ problem: String?) -> Bool {
        let isNew = state.withLock { state in
            defer { state.isFailing = problem != nil }
            return state.isFailing != (problem != nil)
        }
        if isNew, let problem { log.warning("audit.heads_failing", [.error: problem]) }
        if isNew, problem == nil { log.notice("audit.heads_recovered") }
        return problem == nil
    }

    /// Writes on the thread of the place, and waits for it, but not longer than `limit`.
    private func outcome(_ heads: [AuditHead]) async -> Outcome {
        guard let loop = EventLoop.current else { return .failed("no loop") }
        let isFree = state.withLock { state in
            defer { state.isBusy = true }
            return !state.isBusy
        }
        guard isFree else { return .failed("\(sink.name): the last write has not ended") }
        return await withUnsafeContinuation { continuation in
            let answer = Answer(continuation)
            let timer = loop.schedule(after: Self.limit) { [sink] in
                answer.give(.failed(Self.late(sink)))
            }
            worker.post { [sink, self] in
                let outcome: Outcome
                do throws(AuditHeadsFault) {
                    outcome = try sink.write(heads) ? .began : .written
                } catch {
                    outcome = .failed(error.text)
                }
                self.state.withLock { $0.isBusy = false }
                loop.post {
                    loop.cancel(timer)
                    answer.give(outcome)
                }
            }
        }
    }
}

/// The answer to a write, which is given once: by the worker, or when the time is over.
private final class Answer: Sendable {
    private let waiting: Mutex<UnsafeContinuation<AuditHeadsExport.Outcome, Never>?>

    init(_ continuation: UnsafeContinuation<AuditHeadsExport.Outcome, Never>) { waiting = Mutex(continuation) }

    func give(_ outcome: AuditHeadsExport.Outcome) {
        let continuation = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        continuation?.resume(returning: outcome)
    }
}
