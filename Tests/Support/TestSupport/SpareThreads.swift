import EventLoop
import Synchronization
import Testing

/// Runs tasks that block: as many at once as there are, each on a thread.
///
/// The pool of Swift's tasks has a thread for each core and no more, and all tests share it. Whoever blocks one there,
/// with a child process, a server that starts, a socket or hard work, holds up tests that have nothing to do with it.
public final class SpareThreads: TaskExecutor {
    public static let all = SpareThreads()

    private let idle = Mutex<[WorkerThread]>([])

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let thread = thread()
        thread.post {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
            self.idle.withLock { $0.append(thread) }
        }
    }

    private func thread() -> WorkerThread {
        if let thread = idle.withLock({ $0.popLast() }) { return thread }
        guard let thread = try? WorkerThread(name: "spare") else { preconditionFailure("no thread for a test") }
        return thread
    }
}

/// Runs what blocks on a thread that nobody else needs.
public func blocking<Value: Sendable>(_ body: @Sendable () throws -> Value) async rethrows -> Value {
    try await withTaskExecutorPreference(SpareThreads.all) { try body() }
}

/// Of a suite: its tests, with the tasks that they start, run where they may block.
public struct MayBlock: SuiteTrait, TestTrait, TestScoping {
    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(SpareThreads.all) { try await function() }
    }
}

extension Trait where Self == MayBlock {
    public static var mayBlock: Self { MayBlock() }
}
