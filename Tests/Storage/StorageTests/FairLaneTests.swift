import Domain
import EventLoop
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// A lane serves another tenant's script during one tenant's flood.
struct FairLaneTests {
    private let flood = Tenant.website(Sample.id(1))
    private let other = Tenant.website(Sample.id(2))

    @Test func otherTenantsScriptRunsInTheNextTransaction() throws {
        let simulated = try Simulated { $0.batch = 8 }
        _ = try simulated.run(TestScript.counter(1))
        let flooding = (0..<1000).map { _ in simulated.submit(TestScript.raise(1), of: flood) }
        #expect(simulated.worker.turn())
        let kept = simulated.submit(TestScript.raise(1), of: other)
        #expect(simulated.worker.turn())
        while simulated.caller.turn() {}
        #expect(kept.answer != nil)
        #expect(flooding.count { $0.answer != nil } < 16)
        simulated.settle()
        // No script is lost or run twice, and each tenant's scripts keep their order.
        let values = try flooding.map { try $0.answer?.get()[1].first?.integer("n") ?? 0 }
        #expect(values == values.sorted())
        #expect(Set(values).count == 1000)
        #expect(try simulated.run(TestScript.value(of: 1)).row(0).integer("n") == 1001)
    }

    @Test func tenantBeyondItsShareIsRefused() throws {
        let simulated = try Simulated { $0.waiting = 10 }
        let flooding = (0..<10).map { simulated.submit(TestScript.counter(Int64($0)), of: flood) }
        let others = (0..<2).map { simulated.submit(TestScript.counter(Int64(100 + $0)), of: other) }
        let own = simulated.submit(TestScript.counter(200), of: .relay)
        while simulated.caller.turn() {}
        #expect(flooding.count { $0.failure == .unavailable("too many requests wait for the store") } == 5)
        simulated.settle()
        #expect((flooding.prefix(5) + others + [own]).allSatisfy { $0.answer != nil && $0.failure == nil })
    }

    @Test func retriedScriptDelaysNoOther() throws {
        let simulated = try Simulated { $0.batch = 8 }
        _ = try simulated.run(TestScript.counter(1))
        let failing = simulated.submit(TestScript.duplicate(1), of: flood)
        let flooding = (0..<7).map { _ in simulated.submit(TestScript.raise(1), of: flood) }
        // All eight failed together; now each is run by itself.
        #expect(simulated.worker.turn())
        let kept = simulated.submit(TestScript.raise(1), of: other)
        #expect(simulated.worker.turn())
        #expect(simulated.worker.turn())
        while simulated.caller.turn() {}
        #expect(kept.answer != nil && kept.failure == nil)
        simulated.settle()
        #expect(failing.failure != nil)
        #expect(flooding.allSatisfy { $0.answer != nil && $0.failure == nil })
        #expect(try simulated.run(TestScript.value(of: 1)).row(0).integer("n") == 8)
    }

    @Test func slowDatabaseShortensSharedTransactions() throws {
        let time = Mutex<TestTime?>(nil)
        let largest = Mutex(0)
        let simulated = try Simulated(
            { _ in },
            watch: {
                ObservedSession($0) { (steps, session) throws(SessionFailure) in
                    time.withLock { $0 }?.advance(by: .microseconds(200) * steps.count)
                    largest.withLock { $0 = max($0, steps.count) }
                    return try session.run(steps)
                }
            })
        _ = try simulated.run(TestScript.counter(1))
        time.withLock { $0 = simulated.time }
        for _ in 0..<30 {
            for _ in 0..<20 { _ = simulated.submit(TestScript.raise(1), of: flood) }
            _ = simulated.submit(TestScript.raise(1), of: other)
            simulated.settle()
        }
        largest.withLock { $0 = 0 }
        for _ in 0..<128 { _ = simulated.submit(TestScript.raise(1), of: flood) }
        simulated.settle()
        // 200 µs each: 50 statements take as long as other tenants may have to wait.
        #expect((32...64).contains(largest.withLock { $0 }))
    }

    @Test func singleTenantLaneTakesAllScripts() {
        var budget = BatchBudget()
        let start = Instant(nanoseconds: 0)
        for _ in 0..<100 {
            budget.came(flood, at: start)
            budget.came(.relay, at: start)
            budget.took(.seconds(1), for: 100)
        }
        #expect(budget.limit(at: start) == nil)
        budget.came(other, at: start + .seconds(1))
        #expect(budget.limit(at: start + .seconds(2)) == BatchBudget.least)
        #expect(budget.limit(at: start + .seconds(12)) == nil)
    }
}

extension Simulated {
    /// Submits a script on behalf of a tenant.
    func submit(_ script: Script, of tenant: Tenant) -> Kept {
        let kept = Kept()
        let store = store
        caller.asCurrent {
            caller.spawn {
                await tenant.run {
                    do throws(StoreFailure) {
                        kept.set(.success(try await store.run(script)))
                    } catch {
                        kept.set(.failure(error))
                    }
                }
            }
        }
        return kept
    }
}
