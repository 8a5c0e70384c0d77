import Synchronization

/// Runs posted work, one piece after the other.
public protocol Worker: Sendable {
    func post(_ work: @escaping @Sendable () -> Void)
}

extension EventLoop: Worker {}

/// A thread for libraries that block. It runs work in the order in which it was posted.
public final class WorkerThread: Worker {
    private struct Queue {
        var work: [@Sendable () -> Void] = []
        var asleep = false
        var stopped = false
    }

    private let queue = Mutex(Queue())
    private let bell = WakeSemaphore()
    private let ended = WakeSemaphore()

    public init(name: String) throws(SystemFailure) {
        try SystemThread(name: name) { [queue = QueueOf(self)] in queue.worker.body() }.detach()
    }

    /// Adds work. After `stop()`, it is dropped.
    public func post(_ work: @escaping @Sendable () -> Void) {
        let mustRing = queue.withLock { queue in
            guard !queue.stopped else { return false }
            queue.work.append(work)
            let asleep = queue.asleep
            queue.asleep = false
            return asleep
        }
        if mustRing { bell.signal() }
    }

    /// Ends the thread after the work that has been posted already. It does not wait for that.
    public func stop() {
        let mustRing = queue.withLock { queue in
            queue.stopped = true
            let asleep = queue.asleep
            queue.asleep = false
            return asleep
        }
        if mustRing { bell.signal() }
    }

    /// Waits until a stopped worker has done everything. Returns false if that takes longer. Do not
    /// call it on the worker itself.
    @discardableResult public func join(within limit: Duration) -> Bool {
        guard ended.wait(for: limit) else { return false }
        ended.signal()
        return true
    }

    private func body() {
        defer { ended.signal() }
        while true {
            let (work, over) = queue.withLock { queue in
                defer { queue.work = [] }
                queue.asleep = queue.work.isEmpty && !queue.stopped
                return (queue.work, queue.work.isEmpty && queue.stopped)
            }
            if over { return }
            if work.isEmpty { bell.wait() }
            for piece in work { piece() }
        }
    }

    /// Keeps the worker alive for its thread. A closure in `init` may not capture `self` itself.
    private struct QueueOf: Sendable {
        let worker: WorkerThread
        init(_ worker: WorkerThread) { self.worker = worker }
    }
}
