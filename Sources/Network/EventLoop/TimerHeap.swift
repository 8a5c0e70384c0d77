import World

/// The name of a timer. After the timer has fired, its id is invalid, because the slot has another
/// generation.
public struct TimerID: Hashable, Sendable {
    fileprivate let slot: Int32
    fileprivate let generation: UInt32
}

/// A binary heap of deadlines that knows the position of each timer, so that a cancelled timer is
/// removed at once. Timers with the same deadline fire in the order in which they were added.
package struct TimerHeap<Work> {
    private struct Entry {
        let deadline: Instant
        let order: UInt64
        let slot: Int32
    }

    private struct Slot {
        var work: Work?
        var position: Int32
        var generation: UInt32
    }

    private var entries: [Entry] = []
    private var slots: [Slot] = []
    private var free: [Int32] = []
    private var added: UInt64 = 0

    package init() {}

    var count: Int { entries.count }
    package var nextDeadline: Instant? { entries.first?.deadline }

    @discardableResult
    package mutating func add(_ work: Work, at deadline: Instant) -> TimerID {
        let slot: Int32
        if let last = free.popLast() {
            slot = last
            slots[Int(slot)].work = work
        } else {
            slot = Int32(slots.count)
            slots.append(Slot(work: work, position: 0, generation: 0))
        }
        added += 1
        entries.append(Entry(deadline: deadline, order: added, slot: slot))
        rise(entries.count - 1)
        return TimerID(slot: slot, generation: slots[Int(slot)].generation)
    }

    @discardableResult
    mutating func cancel(_ id: TimerID) -> Bool {
        guard Int(id.slot) < slots.count, slots[Int(id.slot)].generation == id.generation,
            slots[Int(id.slot)].work != nil
        else { return false }
        remove(at: Int(slots[Int(id.slot)].position))
        release(id.slot)
        return true
    }

    /// Removes the earliest timer and returns its work, if its deadline is not after `now`.
    package mutating func popDue(_ now: Instant) -> Work? {
        guard let first = entries.first, first.deadline <= now else { return nil }
        let work = slots[Int(first.slot)].work
        remove(at: 0)
        release(first.slot)
        return work
    }

    private mutating func release(_ slot: Int32) {
        slots[Int(slot)].work = nil
        slots[Int(slot)].generation &+= 1
        free.append(slot)
    }

    private mutating func remove(at position: Int) {
        let last = entries.count - 1
        if position != last {
            entries[position] = entries[last]
            entries.removeLast()
            rise(position)
            sink(position)
        } else {
            entries.removeLast()
        }
    }

    private static func precedes(_ a: Entry, _ b: Entry) -> Bool {
        a.deadline == b.deadline ? a.order < b.order : a.deadline < b.deadline
    }

    private mutating func rise(_ start: Int) {
        var at = start
        let entry = entries[at]
        while at > 0 {
            let parent = (at - 1) / 2
            guard Self.precedes(entry, entries[parent]) else { break }
            place(entries[parent], at)
            at = parent
        }
        place(entry, at)
    }

    private mutating func sink(_ start: Int) {
        var at = start
        let entry = entries[at]
        while true {
            var child = 2 * at + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, Self.precedes(entries[child + 1], entries[child]) { child += 1 }
            guard Self.precedes(entries[child], entry) else { break }
            place(entries[child], at)
            at = child
        }
        place(entry, at)
    }

    private mutating func place(_ entry: Entry, _ position: Int) {
        entries[position] = entry
        slots[Int(entry.slot)].position = Int32(position)
    }
}
