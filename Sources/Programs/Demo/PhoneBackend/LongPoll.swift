import EventLoop
import Synchronization

/// Requests that are held until there is something new, or for so long as they may be.
final class LongPoll: Sendable {
    private struct State {
        var rings: UInt64 = 0
        var last: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let loop: EventLoop
    private let state = Mutex(State())

    /// A browser's request is answered before the server of pages gives it up.
    static let timeout = Duration.seconds(15)

    init(loop: EventLoop) { self.loop = loop }

    /// How often it rang: to be read before what it rings for is looked at.
    var rings: UInt64 { state.withLock { $0.rings } }

    func notifyWaiters() {
        let waiting = state.withLock { state in
            state.rings += 1
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// On the loop. Comes back when it has rung since, and at `timeout` all the same.
    func next(after rings: UInt64) async {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        let timer = loop.schedule(after: Self.timeout) { [self] in
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard state.rings == rings else { return true }
                state.waiting[number] = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
        loop.cancel(timer)
    }
}
