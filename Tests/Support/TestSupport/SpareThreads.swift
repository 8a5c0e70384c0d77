import EventLoop
import Synchronization
import Testing

/// An executor for tasks that block, with one thread for each blocked task.
///
/// Swift's task pool has one thread for each core, and all tests share it. A test that blocks such
/// a thread (with a child process, a starting server, a socket or long computation) delays
/// unrelated tests. Tested in `SpareThreadTests.swift`.
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

/// Runs blocking work on a thread outside of the shared pool.
public func blocking<Value: Sendable>(_ body: @Sendable () throws -> Value) async rethrows -> Value {
    try await withTaskExecutorPreference(SpareThreads.all) { try body() }
}

/// A trait for suites whose tests, and the tasks of these tests, may block.
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
