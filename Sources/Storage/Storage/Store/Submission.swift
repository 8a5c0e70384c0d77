import EventLoop
import Relay
import Synchronization
import World

typealias ScriptResult = Result<[Rows], StoreFailure>

/// A script in a lane, with the continuation of its caller. It is answered once; later answers are
/// dropped.
final class Submission: Sendable {
    private struct Waiting {
        var receive: (@Sendable (ScriptResult) -> Void)?
        var timer: TimerID?
    }

    let script: Script
    /// The tenant on whose behalf the script runs. Each tenant has its own place in the queue.
    let tenant: Tenant
    /// The cause of the audit rows that the script writes.
    let cause: AuditCause
    /// The time at which the caller stops waiting.
    let deadline: Instant
    /// The loop of the caller, where answers are delivered; nil if the caller has none.
    let loop: EventLoop?
    private let waiting: Mutex<Waiting>

    init(
        _ script: Script, of tenant: Tenant, by cause: AuditCause, deadline: Instant, loop: EventLoop?,
        receive: @escaping @Sendable (ScriptResult) -> Void
    ) {
        self.script = script
        self.tenant = tenant
        self.cause = cause
        self.deadline = deadline
        self.loop = loop
        waiting = Mutex(Waiting(receive: receive))
    }

    /// Answers with a failure after `limit`, even if the lane hangs. It must be called on the
    /// caller's loop.
    func giveUp(after limit: Duration) {
        guard let loop else { return }
        let timer = loop.schedule(after: limit) { self.answer(.failure(Self.late)) }
        waiting.withLock { $0.timer = timer }
    }

    static let late = StoreFailure.unavailable("the store did not answer in time")

    var isAnswered: Bool { waiting.withLock { $0.receive == nil } }

    /// Answers the caller. If there is a loop, it must be called on that loop.
    func answer(_ answer: ScriptResult) {
        let (receive, timer) = waiting.withLock { waiting in
            defer { waiting = Waiting() }
            return (waiting.receive, waiting.timer)
        }
        if let timer { loop?.cancel(timer) }
        receive?(answer)
    }
}
