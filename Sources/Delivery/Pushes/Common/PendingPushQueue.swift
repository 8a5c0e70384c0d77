import EventLoop

/// The pushes that wait for a stream, taken from each owner in turn, and in the order of arrival for
/// each. Pushes that were settled meanwhile stay in the queue and are skipped.
struct PendingPushQueue {
    private var waiting = FairQueue<String, PendingPush>()
    /// Pushes that came back after an attempt, as a stack. They go first because they have waited
    /// longest.
    private var returned: [PendingPush] = []
    private var counts = OwnerCounts<String>()

    var count: Int { counts.total }
    var isEmpty: Bool { counts.total == 0 }

    /// Whether there is room for another push of this owner.
    func hasRoom(for owner: String, capacity: Int) -> Bool { counts.hasRoom(for: owner, capacity: capacity) }

    mutating func append(_ push: PendingPush) {
        counts.add(push.push.owner)
        waiting.append(push, of: push.push.owner)
    }

    mutating func requeue(_ push: PendingPush) {
        counts.add(push.push.owner)
        returned.append(push)
    }

    /// Corrects the count after a queued push was settled.
    mutating func settled(_ push: PendingPush) { counts.remove(push.push.owner) }

    /// Returns the next push without removing it.
    mutating func first() -> PendingPush? {
        while let last = returned.last {
            if !last.isSettled { return last }
            returned.removeLast()
        }
        while let next = waiting.first {
            if !next.isSettled { return next }
            _ = waiting.popFirst()
        }
        return nil
    }

    mutating func popFirst() -> PendingPush? {
        guard let pending = first() else { return nil }
        if returned.isEmpty { _ = waiting.popFirst() } else { returned.removeLast() }
        counts.remove(pending.push.owner)
        return pending
    }
}
