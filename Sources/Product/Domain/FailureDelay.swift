import World

/// Delays after failures: wrong numbers slow a phone down, and wrong codes slow all codes of a user
/// down. Numbers are counted for each phone and codes for each user (see `CodeLockout`), across
/// challenges, relays and restarts.
public enum FailureDelay {
    /// The pause after the first failure; each further one adds the same amount.
    public static let pause = Duration.seconds(5)

    /// The number of failures above which the delay no longer grows; it is more than 150 years by
    /// then.
    private static let mostFailures = 1_000_000_000

    /// Returns the time for which nothing is checked yet, or nil if checking is allowed now. The
    /// result is at most the whole delay: a failure further in the future comes from a wrong clock
    /// and is ignored.
    public static func wait(after failures: Int, lastAt: Timestamp?, at now: Timestamp) -> Duration? {
        guard failures > 0, let lastAt else { return nil }
        // The store may hold any number: the sum must not overflow.
        let whole = pause * min(failures, mostFailures)
        guard lastAt - now <= whole else { return nil }
        let left = min(lastAt + whole - now, whole)
        return left > .zero ? left : nil
    }
}
