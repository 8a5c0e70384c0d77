import EventLoop
import Synchronization

/// What the relay began on its own and nobody waits for, until the daemon stops and does.
final class BackgroundWork: Sendable {
    private struct State {
        var running = 0
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// On a loop.
    func spawn(_ work: @escaping @Sendable () async -> Void) {
        guard let loop = EventLoop.current else { return }
        state.withLock { $0.running += 1 }
        loop.spawn {
            await work()
            self.ended()
        }
    }

    /// On a loop: returns when nothing runs, or after `limit`.
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
