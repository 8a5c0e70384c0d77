import EventLoop
import Synchronization

/// Work that may hang, for example on a network file system, and whose caller must go on.
enum BoundedWork {
    /// Runs work on a thread of its own.
    ///
    /// - Returns: the result; nil if the work takes longer. Its thread is then left to its end.
    static func run<Value: Sendable>(
        _ name: String, within limit: Duration, _ work: @escaping @Sendable () -> Value
    ) -> Value? {
        let worker: WorkerThread
        do throws(SystemFailure) {
            worker = try WorkerThread(name: name)
        } catch {
            // Without threads, a wait without a limit is better than no result.
            return work()
        }
        let kept = Kept<Value>()
        worker.post {
            let value = work()
            kept.value.withLock { $0 = value }
        }
        worker.stop()
        worker.join(within: limit)
        return kept.value.withLock { $0 }
    }

    private final class Kept<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }
}
