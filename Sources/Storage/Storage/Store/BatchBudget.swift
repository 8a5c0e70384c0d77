import Relay
import World

/// The number of statements that may go into one transaction of a lane.
///
/// Purpose: scripts that commit together share the cost of one commit, but every script that
/// arrives during the transaction waits until it ends. If only one tenant uses the lane,
/// `Lane.Limits.batch` alone limits the batch. If several tenants share it, a transaction should
/// take about `aim`; the budget learns how many statements fit into that time.
///
/// Invariant: the budget stays between `least` and `most` statements, so a slow database cannot
/// stop a lane and a fast one cannot make long transactions.
///
/// Failures: one measurement may be wrong because the disk was busy. The budget therefore moves by
/// a quarter of the difference after each transaction.
///
/// `FairLaneTests.swift` tests it.
struct BatchBudget {
    /// The target length of a transaction while several tenants share the lane.
    static let aim = Duration.milliseconds(10)
    /// The smallest budget, even if the database is slow.
    static let least = 32
    /// The time for which a lane counts as shared after a script of another tenant arrived.
    static let memory = Duration.seconds(10)

    /// The current budget, in statements.
    private(set) var statements = 512
    private var lastTenant: Tenant?
    private var sharedAt: Instant?

    /// Records that a script of the tenant arrived. The relay's own scripts do not make a lane
    /// shared, because every lane has some.
    mutating func came(_ tenant: Tenant, at now: Instant) {
        guard tenant != .relay else { return }
        if let lastTenant, lastTenant != tenant { sharedAt = now }
        lastTenant = tenant
    }

    /// The number of statements that may go into the next transaction; nil if one tenant alone uses
    /// the lane.
    func limit(at now: Instant) -> Int? {
        guard let sharedAt, now - sharedAt < Self.memory else { return nil }
        return statements
    }

    /// Records how long these statements took, and moves the budget towards the target.
    mutating func took(_ duration: Duration, for statements: Int) {
        guard statements > 0 else { return }
        let nanoseconds = max(duration.wholeNanoseconds, 1)
        let fitting = Int64(Double(statements) * Double(Self.aim.wholeNanoseconds) / Double(nanoseconds))
        let target = Int(clamping: min(max(fitting, Int64(Self.least)), Int64(Self.most)))
        let gap = target - self.statements
        self.statements += abs(gap) < 4 ? gap.signum() : gap / 4
    }

    private static let most = 4096
}
