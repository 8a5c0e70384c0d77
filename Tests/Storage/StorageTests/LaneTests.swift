import EventLoop
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// Queues, batches and deadlines of a lane, turn by turn on simulated loops.
struct LaneTests {
    @Test func queuedScriptsShareOneTransactionAndOneWakeup() throws {
        let simulated = try Simulated()
        _ = try simulated.run(TestScript.counter(1))
        let kept = (0..<10).map { _ in simulated.submit(TestScript.raise(1)) }
        #expect(simulated.worker.turn())
        #expect(!simulated.worker.turn())
        #expect(kept.allSatisfy { $0.answer == nil })
        // One posted job resumes all ten tasks; then each has its own turn.
        #expect(simulated.caller.turn())
        for _ in kept { #expect(simulated.caller.turn()) }
        #expect(!simulated.caller.turn())
        let values = try kept.map { try $0.answer?.get()[1].first?.integer("n") }
        #expect(values == (1...10).map { Int64($0) })
    }

    @Test func transactionSizeIsLimited() throws {
        let simulated = try Simulated { $0.batch = 4 }
        _ = try simulated.run(TestScript.counter(1))
        for _ in 0..<10 { _ = simulated.submit(TestScript.raise(1)) }
        var turns = 0
        while simulated.worker.turn() { turns += 1 }
        #expect(turns == 3)
        simulated.settle()
        #expect(try simulated.run(TestScript.value(of: 1)).row(0).integer("n") == 10)
    }

    @Test func resultsReturnToTheirLoop() throws {
        let simulated = try Simulated()
        let other = EventLoop.simulated(name: "other", time: simulated.time) { _ in 0 }
        _ = try simulated.run(TestScript.counter(1))
        let here = simulated.submit(TestScript.raise(1))
        let there = simulated.submit(TestScript.raise(1), on: other)
        #expect(simulated.worker.turn())
        while simulated.caller.turn() {}
        #expect(here.answer != nil)
        #expect(there.answer == nil)
        while other.turn() {}
        #expect(there.answer != nil)
    }

    @Test func stuckWorkerTimesOutCallers() throws {
        let simulated = try Simulated()
        _ = try simulated.run(TestScript.counter(1))
        let kept = simulated.submit(TestScript.raise(1))
        simulated.time.advance(by: StoreOptions().deadline)
        while simulated.caller.turn() {}
        #expect(kept.failure == Submission.late)
        // The script waited beyond its deadline, so it does not run any more.
        simulated.settle()
        #expect(try simulated.run(TestScript.value(of: 1)).row(0).integer("n") == 0)
    }

    @Test func fullLaneRefusesScripts() throws {
        // A single tenant may use half of the queue.
        let simulated = try Simulated { $0.waiting = 6 }
        let kept = (0..<4).map { simulated.submit(TestScript.counter(Int64($0))) }
        while simulated.caller.turn() {}
        #expect(kept[2].answer == nil)
        #expect(kept[3].failure == .unavailable("too many requests wait for the store"))
        simulated.settle()
        #expect(kept.prefix(3).allSatisfy { $0.answer != nil && $0.failure == nil })
    }

    @Test func closedLaneFailsWaitingAndLaterScripts() throws {
        let simulated = try Simulated()
        let waiting = simulated.submit(TestScript.counter(1))
        simulated.store.close()
        let later = simulated.submit(TestScript.counter(2))
        simulated.settle()
        #expect(waiting.failure == .unavailable("the store is closed"))
        #expect(later.failure == .unavailable("the store is closed"))
    }

    @Test func answeredScriptCancelsItsTimer() throws {
        let simulated = try Simulated()
        _ = try simulated.run(TestScript.counter(1))
        #expect(simulated.caller.nextDeadline == nil)
    }
}
