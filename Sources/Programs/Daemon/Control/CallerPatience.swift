/// The time for which a thread waits for a caller that does not read: for a while each time, and not
/// longer in all. Otherwise a caller that reads a little at a time would hold a thread for ever.
///
/// `CallerPatienceTests.swift` tests it.
struct CallerPatience: Sendable {
    let once: Duration
    let inAll: Duration
    private var waited = Duration.zero

    init(once: Duration = .seconds(10), inAll: Duration = .seconds(60)) {
        self.once = once
        self.inAll = inAll
    }

    /// The longest next wait; nil if none is left.
    var next: Duration? {
        let left = min(once, inAll - waited)
        return left > .zero ? left : nil
    }

    /// Counts a wait, also one that was too short for the clock.
    mutating func count(_ wait: Duration) { waited += max(wait, .milliseconds(1)) }
}
