import Testing
import World

@testable import EventLoop

struct TimerHeapTests {
    private func at(_ moment: Int64) -> Instant { Instant(nanoseconds: moment) }

    @Test func timersFireByDeadlineThenInsertion() {
        var heap = TimerHeap<String>()
        _ = heap.add("c", at: at(3))
        _ = heap.add("a1", at: at(1))
        _ = heap.add("b", at: at(2))
        _ = heap.add("a2", at: at(1))
        var fired: [String] = []
        while let work = heap.popDue(at(10)) { fired.append(work) }
        #expect(fired == ["a1", "a2", "b", "c"])
    }

    @Test func timerDoesNotFireEarly() {
        var heap = TimerHeap<String>()
        _ = heap.add("later", at: at(5))
        let early = heap.popDue(at(4))
        let due = heap.popDue(at(5))
        #expect(early == nil)
        #expect(due == "later")
    }

    @Test func staleTimerIDCancelsNothing() {
        var heap = TimerHeap<String>()
        let first = heap.add("first", at: at(1))
        let fired = heap.popDue(at(1))
        _ = heap.add("second", at: at(2))
        let cancelled = heap.cancel(first)
        let next = heap.popDue(at(2))
        #expect(fired == "first")
        #expect(!cancelled)
        #expect(next == "second")
    }

    /// The model is a sorted array. Timers are cancelled between the others.
    @Test(arguments: 0..<20) func timerHeapMatchesAModel(seed: UInt64) {
        var random = SplitMix(state: seed)
        var heap = TimerHeap<Int>()
        var model: [(deadline: Int64, number: Int, id: TimerID)] = []
        for number in 0..<500 {
            let deadline = Int64.random(in: 0..<50, using: &random)
            model.append((deadline, number, heap.add(number, at: at(deadline))))
            if Bool.random(using: &random) {
                let victim = model.remove(at: Int.random(in: 0..<model.count, using: &random))
                let (first, second) = (heap.cancel(victim.id), heap.cancel(victim.id))
                #expect(first && !second)
            }
        }
        #expect(heap.count == model.count)
        var fired: [Int] = []
        while let work = heap.popDue(at(50)) { fired.append(work) }
        let expected = model.sorted { ($0.deadline, $0.number) < ($1.deadline, $1.number) }.map(\.number)
        #expect(fired == expected)
    }
}

struct SplitMix: RandomNumberGenerator, Sendable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
