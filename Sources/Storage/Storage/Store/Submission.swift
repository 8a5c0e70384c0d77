import EventLoop
import Relay
import Synchronization
import World

typealias ScriptResult = Result<[Rows], StoreFailure>

/// A script on its way through a lane, and the one who waits for it. It is answered once; what comes later is dropped.
final class Submission: Sendable {
    private struct Waiting {
        var receive: (@Sendable (ScriptResult) -> Void)?
        var timer: TimerID?
    }

    let script: Script
    /// On whose behalf: who has a place of their own in the queue.
    let tenant: Tenant
    /// Whoever submitted it gives up at this moment.
    let deadline: Instant
    /// The loop that waits, if it is one: answers are brought there.
    let loop: EventLoop?
    private let waiting: Mutex<Waiting>

    init(
        _ script: Script, of tenant: Tenant, deadline: Instant, loop: EventLoop?,
        receive: @escaping @Sendable (ScriptResult) -> Void
    ) {
        self.script = script
        self.tenant = tenant
        self.deadline = deadline
        self.loop = loop
        waiting = Mutex(Waiting(receive: receive))
    }

    /// On its loop: answers by itself after `limit`, however stuck the lane is.
    func giveUp(after limit: Duration) {
        guard let loop else { return }
        let timer = loop.schedule(after: limit) { self.answer(.failure(Self.late)) }
        waiting.withLock { $0.timer = timer }
    }

    static let late = StoreFailure.unavailable("the store did not answer in time")

    var isAnswered: Bool { waiting.withLock { $0.receive == nil } }

    /// On its loop, if it has one.
    func answer(_ answer: ScriptResult) {
        let (receive, timer) = waiting.withLock { waiting in
            defer { waiting = Waiting() }
            return (waiting.receive, waiting.timer)
        }
        if let timer { loop?.cancel(timer) }
        receive?(answer)
    }
}
