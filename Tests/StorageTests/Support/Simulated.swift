import EventLoop
import Log
import Relay
import Synchronization
import World

@testable import Storage

/// A clock that moves when it is told to.
final class ManualTime: TimeSource {
    private let moved = Mutex(Duration.zero)

    func now() -> Timestamp { Timestamp(milliseconds: 1_800_000_000_000) + moved.withLock { $0 } }
    func instant() -> Instant { Instant(nanoseconds: 1) + moved.withLock { $0 } }
    func advance(by duration: Duration) { moved.withLock { $0 += duration } }
}

/// A store in memory with a worker and callers that run only when the test says so.
final class Simulated {
    let time = ManualTime()
    let sink = MemorySink()
    let worker: EventLoop
    let caller: EventLoop
    let store: Store

    init(_ change: (inout StoreOptions) -> Void = { _ in }) throws {
        var options = StoreOptions()
        change(&options)
        let worker = EventLoop.simulated(name: "store", time: time) { _ in 0 }
        self.worker = worker
        caller = EventLoop.simulated(name: "caller", time: time) { _ in 0 }
        store = try Store.open(
            .memory, schema: .migrate, migrations: TestSchema.all, time: time, log: Log(time: time, sink: sink),
            options: options, worker: { _ in worker })
    }

    /// Submits on a loop and keeps the answer.
    func submit(_ script: Script, on loop: EventLoop? = nil) -> Kept {
        let loop = loop ?? caller
        let kept = Kept()
        loop.asCurrent {
            loop.spawn { [store] in
                do throws(StoreFailure) {
                    kept.set(.success(try await store.run(script)))
                } catch {
                    kept.set(.failure(error))
                }
            }
        }
        return kept
    }

    /// Until nothing is ready on either loop.
    func settle() {
        while worker.turn() || caller.turn() {}
    }

    func run(_ script: Script) throws -> [Rows] {
        let kept = submit(script)
        settle()
        guard let answer = kept.answer else { throw StoreFailure.internal("no answer") }
        return try answer.get()
    }
}

/// The answer that a task got, if it got one.
final class Kept: Sendable {
    private let value = Mutex<Answer?>(nil)
    var answer: Answer? { value.withLock { $0 } }
    func set(_ answer: Answer) { value.withLock { $0 = answer } }

    var failure: StoreFailure? {
        guard case .failure(let failure)? = answer else { return nil }
        return failure
    }
}
