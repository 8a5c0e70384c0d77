import EventLoop
import Synchronization

/// Runs work of the website that no browser waits for. Each task ends by itself, and `close` ends
/// all of them.
final class BackgroundTasks: Sendable {
    private struct BackgroundTask {
        let cancel: @Sendable () -> Void
        let end: @Sendable () async -> Void
    }

    private struct State {
        var last = 0
        var running: [Int: BackgroundTask] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())
    private let loop: EventLoop

    init(loop: EventLoop) { self.loop = loop }

    @discardableResult
    func begin<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Task<Value, Never> {
        state.withLock { state in
            state.last += 1
            let number = state.last
            let task = Task(executorPreference: loop) {
                let value = await work()
                self.over(number)
                return value
            }
            state.running[number] = BackgroundTask(cancel: { task.cancel() }, end: { _ = await task.value })
            if state.isClosed { task.cancel() }
            return task
        }
    }

    /// Cancels all tasks, and returns when they have ended.
    func close() async {
        let running = state.withLock { state in
            state.isClosed = true
            return state.running.values
        }
        for task in running { task.cancel() }
        for task in running { await task.end() }
    }

    private func over(_ number: Int) { state.withLock { $0.running[number] = nil } }
}
