import CLinux
import Glibc
import Synchronization
import World

/// Takes work and does it, one piece after the other.
public protocol Worker: Sendable {
    func post(_ work: @escaping @Sendable () -> Void)
}

extension EventLoop: Worker {}

/// One thread for libraries that block. First in, first out.
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

    /// What is posted after `stop()` is dropped.
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

    /// Does what has been posted already, then ends the thread. Does not wait for it.
    public func stop() {
        let mustRing = queue.withLock { queue in
            queue.stopped = true
            let asleep = queue.asleep
            queue.asleep = false
            return asleep
        }
        if mustRing { bell.signal() }
    }

    /// Waits until a stopped worker has done everything; false if that takes longer. Not from the worker itself.
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

    /// Keeps the worker alive for its thread; a closure in `init` may not capture `self` by itself.
    private struct QueueOf: Sendable {
        let worker: WorkerThread
        init(_ worker: WorkerThread) { self.worker = worker }
    }
}

/// A semaphore. `@unchecked Sendable`: sem_post and sem_wait are made for several threads, and the memory lives as long
/// as the object.
private final class WakeSemaphore: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func signal() { sem_post(semaphore) }
    func wait() { while sem_wait(semaphore) != 0 {} }

    /// False if it was not rung in time.
    func wait(for limit: Duration) -> Bool {
        // The system waits by its own clock, whatever time a test has.
        let (seconds, nanoseconds) = (SystemTime().instant() + limit).nanoseconds.quotientAndRemainder(
            dividingBy: 1_000_000_000)
        var end = timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
        while true {
            if clinux_wait_until(semaphore, CLOCK_MONOTONIC, &end) == 0 { return true }
            if errno != EINTR { return false }
        }
    }
}
