/// The pushes that wait for a stream, in FIFO order. Pushes that were settled meanwhile stay in the
/// queue and are skipped.
struct PendingPushQueue {
    private var waiting: [PendingPush?] = []
    private var start = 0
    /// Pushes that came back after an attempt, as a stack. They go first because they have waited
    /// longest.
    private var returned: [PendingPush] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ push: PendingPush) {
        count += 1
        waiting.append(push)
    }

    mutating func requeue(_ push: PendingPush) {
        count += 1
        returned.append(push)
    }

    /// Corrects the count after a queued push was settled.
    mutating func settledOne() { count -= 1 }

    /// Returns the next push without removing it.
    mutating func first() -> PendingPush? {
        while let last = returned.last {
            if !last.isSettled { return last }
            returned.removeLast()
        }
        while start < waiting.count {
            if let pending = waiting[start], !pending.isSettled { return pending }
            waiting[start] = nil
            start += 1
        }
        compact()
        return nil
    }

    mutating func popFirst() -> PendingPush? {
        guard let pending = first() else { return nil }
        if returned.isEmpty {
            waiting[start] = nil
            start += 1
            compact()
        } else {
            returned.removeLast()
        }
        count -= 1
        return pending
    }

    private mutating func compact() {
        if start == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.capacity <= 4096)
            start = 0
        } else if start > 1024, start * 2 > waiting.count {
            waiting.removeFirst(start)
            start = 0
        }
    }
}
