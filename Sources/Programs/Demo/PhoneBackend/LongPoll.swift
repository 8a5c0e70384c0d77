import EventLoop
import Synchronization

/// Holds requests of pages until something is new, or until the timeout.
///
/// Invariant: no event is missed. The caller reads `events` before it looks for new items. `next`
/// returns at once if there was an event since then.
final class LongPoll: Sendable {
    private struct State {
        var events: UInt64 = 0
        var last: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let loop: EventLoop
    private let state = Mutex(State())

    /// The longest time to hold a request. It is shorter than the time-out of the page server.
    static let timeout = Duration.seconds(15)

    init(loop: EventLoop) { self.loop = loop }

    /// The number of events so far. Read it before you look for new items.
    var events: UInt64 { state.withLock { $0.events } }

    func notifyWaiters() {
        let waiting = state.withLock { state in
            state.events += 1
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns after the next event, or at `timeout`. It must be called on the loop.
    func next(after events: UInt64) async {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        let timer = loop.schedule(after: Self.timeout) { [self] in
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard state.events == events else { return true }
                state.waiting[number] = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
        loop.cancel(timer)
    }
}
