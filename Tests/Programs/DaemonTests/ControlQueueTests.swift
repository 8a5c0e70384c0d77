import TestSupport
import Testing

@testable import Daemon

/// The order in which commands of the control socket run.
@Suite struct ControlQueueTests {
    private static let (eve, joe, ann): (UInt32, UInt32, UInt32) = (5, 6, 7)

    @Test func accountRunsTwoCommandsAtOnce() {
        var queue = ControlQueue<String, Int>(threads: [1, 2, 3, 4])
        #expect(queue.add("a", of: Self.eve, isChange: true)?.job == "a")
        #expect(queue.add("b", of: Self.eve, isChange: true)?.job == "b")
        #expect(queue.add("c", of: Self.eve, isChange: true)?.job == nil)
        #expect(queue.add("d", of: Self.eve, isChange: false)?.job == nil)
        #expect(queue.jobs == ["c", "d"])
        // Others do not wait for this account.
        #expect(queue.add("e", of: Self.joe, isChange: false)?.job == "e")
        #expect(queue.end(of: Self.joe, isChange: false, on: 1)?.job == nil)
        #expect(queue.end(of: Self.eve, isChange: true, on: 1)?.job == "c")
        #expect(queue.end(of: Self.eve, isChange: true, on: 1)?.job == "d")
        #expect(queue.jobs == [])
    }

    @Test func readsLeaveAThreadToChanges() {
        var queue = ControlQueue<String, Int>(threads: [1, 2, 3, 4])
        #expect(queue.add("a", of: Self.eve, isChange: false)?.job == "a")
        #expect(queue.add("b", of: Self.eve, isChange: false)?.job == "b")
        #expect(queue.add("c", of: Self.joe, isChange: false)?.job == "c")
        #expect(queue.add("d", of: Self.joe, isChange: false)?.job == nil)
        #expect(queue.add("lock", of: Self.ann, isChange: true)?.job == "lock")
        // All threads are busy now, also for changes.
        #expect(queue.add("more", of: Self.ann, isChange: true)?.job == nil)
        #expect(queue.end(of: Self.ann, isChange: true, on: 1)?.job == "more")
        #expect(queue.end(of: Self.eve, isChange: false, on: 1)?.job == "d")
    }

    @Test func nothingBeginsAfterTheStop() {
        var queue = ControlQueue<String, Int>(threads: [1, 2])
        #expect(queue.add("a", of: Self.eve, isChange: false)?.job == "a")
        #expect(queue.add("b", of: Self.eve, isChange: false)?.job == nil)
        queue.clear()
        #expect(queue.end(of: Self.eve, isChange: false, on: 1)?.job == nil)
    }
}
