import TestSupport
import Testing
import World

@testable import Storage

/// The times at which a write-ahead log is checkpointed, tested without a database and without a thread.
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
        // SQLite has restarted the log.
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
        // A reader prevents a restart of the log.
        #expect(policy.committed(2401) == nil)
        #expect(policy.committed(2500) == .here)
    }

    @Test func stalledCheckpointThreadIsBypassed() {
        var policy = CheckpointPolicy(Self.limits)
        #expect(policy.committed(100) == .beside)
        #expect(policy.committed(7999) == nil)
        #expect(policy.committed(8000) == .here)
        // The other thread is busy with a checkpoint. Not every commit checks.
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

    /// Commits of any size without a pause, while a thread needs between one and forty commits for each checkpoint
    /// step. The log stays bounded, and no commit does much checkpoint work.
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
                // While the other thread checkpoints, SQLite refuses a second checkpoint.
                #expect(pages - broughtIn >= Self.limits.most)
                policy.ended(.here, nil)
            }
        }
        #expect(longest < 2 * Self.limits.most * Self.limits.long / (2 * Self.limits.step))
    }
}
