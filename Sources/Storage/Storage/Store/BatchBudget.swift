import Relay
import World

/// The amount of work that goes into one transaction.
///
/// Scripts that are committed together share the cost of a commit, but whoever comes next waits for all of them. While
/// one website has the lane to itself, only the number of scripts is limited. Once others share it, a transaction is to
/// last for `aim` only: how many statements that is follows from how long the last ones took.
struct BatchBudget {
    /// The target length of a transaction for which others wait.
    static let aim = Duration.milliseconds(10)
    /// Statements that are always taken together, however slow the database is.
    static let least = 32
    /// The time for which a lane counts as shared after two tenants were in it.
    static let memory = Duration.seconds(10)

    /// Statements in a transaction that others wait for.
    private(set) var statements = 512
    private var lastTenant: Tenant?
    private var sharedAt: Instant?

    /// A script of that tenant came. The relay's own work is no company: it is everywhere.
    mutating func came(_ tenant: Tenant, at now: Instant) {
        guard tenant != .relay else { return }
        if let lastTenant, lastTenant != tenant { sharedAt = now }
        lastTenant = tenant
    }

    /// Statements that may go into the next transaction; nil where nobody else has to wait for it.
    func limit(at now: Instant) -> Int? {
        guard let sharedAt, now - sharedAt < Self.memory else { return nil }
        return statements
    }

    /// Notes how long these statements took. One transaction says little: a disk may have been
    /// busy.
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
