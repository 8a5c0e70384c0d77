import TestSupport
import Testing
import World

@testable import Storage

/// When a write-ahead log is brought into its file. No database, no thread.
struct CheckpointPolicyTests {
    private static let limits = CheckpointPolicy.Limits(step: 100, long: 2000, most: 8000)

    @Test func checkpointStepsRunOneAtATime() {
        var policy = CheckpointPolicy(Self.limits)
        #expect(policy.committed(99) == nil)
        #expect(policy.committed(100) == .beside)
        #expect(policy.committed(350) == nil)
        policy.ended(.beside, 100)
        #expect(policy.committed(351) == .beside)
        policy.ended(.beside, 351)
        #expect(policy.committed(440) == nil)
        // SQLite has begun the log anew.
        #expect(policy.committed(10) == nil)
        #expect(policy.committed(110) == .beside)
    }

    @Test func commitCheckpointsASmallRemainderOfALongLog() {
        var policy = CheckpointPolicy(Self.limits)
        #expect(policy.committed(1900) == .beside)
        policy.ended(.beside, 1700)
        #expect(policy.committed(2300) == .beside)
        policy.ended(.beside, 2300)
        #expect(policy.committed(2400) == .here)
        policy.ended(.here, 2400)
        // A reader keeps the log from beginning anew.
        #expect(policy.committed(2401) == nil)
        #expect(policy.committed(2500) == .here)
    }

    @Test func stalledCheckpointThreadIsBypassed() {
        var policy = CheckpointPolicy(Self.limits)
        #expect(policy.committed(100) == .beside)
        #expect(policy.committed(7999) == nil)
        #expect(policy.committed(8000) == .here)
        // The other thread has it in hand. Not every commit asks.
        policy.ended(.here, nil)
        #expect(policy.committed(8099) == nil)
        #expect(policy.committed(8100) == .here)
    }

    @Test func failedCheckpointIsRetried() {
        var policy = CheckpointPolicy(Self.limits)
        #expect(policy.committed(100) == .beside)
        policy.ended(.beside, nil)
        #expect(policy.committed(199) == nil)
        #expect(policy.committed(200) == .beside)
    }

    /// Commits of every size, as fast as they can be, beside a thread that takes anything from one to forty of them for a
    /// step. The log stays bounded, and no commit has much to do.
    @Test(arguments: 0..<20) func walSizeIsBoundedUnderAnyLoad(seed: UInt64) {
        let chance = SeededRandomness(seed: seed)
        var policy = CheckpointPolicy(Self.limits)
        var (pages, broughtIn, longest) = (0, 0, 0)
        var step: (end: Int, upTo: Int)?
        for commit in 0..<20_000 {
            if let taken = step, taken.end == commit {
                broughtIn = taken.upTo
                policy.ended(.beside, broughtIn)
                step = nil
            }
            if broughtIn == pages { (pages, broughtIn) = (0, 0) }
            pages += 1 + Int(chance.number(below: seed.isMultiple(of: 2) ? 20 : 200))
            longest = max(longest, pages)
            switch policy.committed(pages) {
            case nil: break
            case .beside: step = (commit + 1 + Int(chance.number(below: 40)), pages)
            case .here where step == nil:
                #expect((pages - broughtIn) * Self.limits.long <= 2 * Self.limits.step * pages)
                broughtIn = pages
                policy.ended(.here, broughtIn)
            case .here:
                // While the other thread is at it, SQLite lets nobody else.
                #expect(pages - broughtIn >= Self.limits.most)
                policy.ended(.here, nil)
            }
        }
        #expect(longest < 2 * Self.limits.most * Self.limits.long / (2 * Self.limits.step))
    }
}
