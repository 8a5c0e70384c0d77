import EventLoop
import Synchronization

/// The running tasks that the relay started itself and that no request waits for, such as sending a
/// push.
///
/// Purpose: the daemon waits for these tasks before it closes what they use (see `Daemon.stop`).
///
/// Invariant: `running` counts every spawned task until it ends. When the count reaches zero, the
/// waiter of `settled` resumes.
///
/// Failure modes: a task that never ends would block the stop, so `settled` has a limit. There is
/// room for one waiter at a time; a second concurrent call to `settled` would replace the first. A
/// call to `spawn` outside a loop drops the work.
///
/// `DrainTests.swift` tests it through the built program.
final class BackgroundWork: Sendable {
    private struct State {
        var running = 0
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Starts a task and counts it until it ends. Must be called on a loop.
    func spawn(_ work: @escaping @Sendable () async -> Void) {
        guard let loop = EventLoop.current else { return }
        state.withLock { $0.running += 1 }
        loop.spawn {
            await work()
            self.ended()
        }
    }

    /// Returns when no task runs, or after `limit`. Must be called on a loop.
    func settled(within limit: Duration) async {
        guard let loop = EventLoop.current else { return }
        let timer = loop.schedule(after: limit) { self.resume() }
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.running > 0 { state.waiting = continuation }
                return state.running == 0
            }
            if isIdle { continuation.resume() }
        }
        loop.cancel(timer)
    }

    private func ended() {
        let isIdle = state.withLock { state in
            state.running -= 1
            return state.running == 0
        }
        if isIdle { resume() }
    }

    private func resume() {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }
}
