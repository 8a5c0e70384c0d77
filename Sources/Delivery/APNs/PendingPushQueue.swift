/// Pushes that wait for a stream, first in, first out. Those that have been settled meanwhile are passed over.
struct PendingPushQueue {
    private var waiting: [PendingPush?] = []
    private var start = 0
    /// Those that have been sent before and come back: they have waited longest. The last is the next.
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

    /// One that stands in here has been settled.
    mutating func settledOne() { count -= 1 }

    /// The next one, which stays.
    mutating func first() -> PendingPush? {
        while let last = returned.last {
            if !last.isSettled { return last }
            returned.removeLast()
        }
        while start < waiting.count {
            if let passage = waiting[start], !passage.isSettled { return passage }
            waiting[start] = nil
            start += 1
        }
        compact()
        return nil
    }

    mutating func popFirst() -> PendingPush? {
        guard let passage = first() else { return nil }
        if returned.isEmpty {
            waiting[start] = nil
            start += 1
            compact()
        } else {
            returned.removeLast()
        }
        count -= 1
        return passage
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
