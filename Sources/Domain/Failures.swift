import World

/// How wrong numbers slow a phone down. They are counted for each phone, across challenges, relays and restarts, and a
/// right number forgets them.
public enum Failures {
    /// After the first wrong one; each further one adds as much again.
    public static let pause = Duration.seconds(5)

    /// How long the phone may not approve yet; nil when it may. Never longer than the whole pause, whatever clocks do:
    /// a failure that lies in the future by more than that is of a clock that was wrong, and says nothing about now.
    public static func wait(after failures: Int, lastAt: Timestamp?, at now: Timestamp) -> Duration? {
        guard failures > 0, let lastAt else { return nil }
        let whole = pause * failures
        guard lastAt - now <= whole else { return nil }
        let left = min(lastAt + whole - now, whole)
        return left > .zero ? left : nil
    }
}
