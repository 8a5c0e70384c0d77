import EventLoop
import Log
import Relay
import Synchronization
import TestSupport
import World

@testable import Storage

/// A store in memory, with a worker and callers that run only when the test lets them.
final class Simulated {
    let time = TestTime()
    let sink = MemorySink()
    let worker: EventLoop
    let caller: EventLoop
    let store: Store

    init(
        _ change: (inout StoreOptions) -> Void = { _ in }, watch: (sending any Session) -> sending any Session = { $0 }
    ) throws {
        var options = StoreOptions()
        change(&options)
        let worker = EventLoop.simulated(name: "store", time: time) { _ in 0 }
        self.worker = worker
        caller = EventLoop.simulated(name: "caller", time: time) { _ in 0 }
        store = try Store.open(
            .memory, schema: .migrate, migrations: TestSchema.all, time: time, log: Log(time: time, sink: sink),
            options: options, watch: watch, worker: { _ in worker })
    }

    /// Submits a script on a loop and keeps the answer.
    func submit(_ script: Script, on loop: EventLoop? = nil) -> Kept { store.submit(script, on: loop ?? caller) }

    /// Runs both loops until neither has work.
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

extension Store {
    /// Submits a script on a simulated loop and keeps the answer.
    func submit(_ script: Script, on loop: EventLoop) -> Kept {
        let kept = Kept()
        loop.asCurrent {
            loop.spawn {
                do throws(StoreFailure) {
                    kept.set(.success(try await self.run(script)))
                } catch {
                    kept.set(.failure(error))
                }
            }
        }
        return kept
    }
}

/// The answer that a task got; nil until then.
final class Kept: Sendable {
    private let value = Mutex<ScriptResult?>(nil)
    var answer: ScriptResult? { value.withLock { $0 } }
    func set(_ answer: ScriptResult) { value.withLock { $0 = answer } }

    var failure: StoreFailure? {
        guard case .failure(let failure)? = answer else { return nil }
        return failure
    }
}
