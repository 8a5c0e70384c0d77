import TestSupport
import Testing

@testable import Daemon

/// The order in which commands of the control socket run.
@Suite struct ControlQueueTests {
    private static let (eve, joe, ann): (UInt32, UInt32, UInt32) = (5, 6, 7)

    @Test func accountRunsTwoCommandsAtOnce() {
        var queue = ControlQueue<String>(threads: 4)
        #expect(queue.add("a", of: Self.eve, isChange: true) == "a")
        #expect(queue.add("b", of: Self.eve, isChange: true) == "b")
        #expect(queue.add("c", of: Self.eve, isChange: true) == nil)
        #expect(queue.add("d", of: Self.eve, isChange: false) == nil)
        #expect(queue.jobs == ["c", "d"])
        // Others do not wait for this account.
        #expect(queue.add("e", of: Self.joe, isChange: false) == "e")
        #expect(queue.end(of: Self.joe, isChange: false) == nil)
        #expect(queue.end(of: Self.eve, isChange: true) == "c")
        #expect(queue.end(of: Self.eve, isChange: true) == "d")
        #expect(queue.jobs == [])
    }

    @Test func readsLeaveAThreadToChanges() {
        var queue = ControlQueue<String>(threads: 4)
        #expect(queue.add("a", of: Self.eve, isChange: false) == "a")
        #expect(queue.add("b", of: Self.eve, isChange: false) == "b")
        #expect(queue.add("c", of: Self.joe, isChange: false) == "c")
        #expect(queue.add("d", of: Self.joe, isChange: false) == nil)
        #expect(queue.add("lock", of: Self.ann, isChange: true) == "lock")
        // All threads are busy now, also for changes.
        #expect(queue.add("more", of: Self.ann, isChange: true) == nil)
        #expect(queue.end(of: Self.ann, isChange: true) == "more")
        #expect(queue.end(of: Self.eve, isChange: false) == "d")
    }

    @Test func nothingBeginsAfterTheStop() {
        var queue = ControlQueue<String>(threads: 2)
        #expect(queue.add("a", of: Self.eve, isChange: false) == "a")
        #expect(queue.add("b", of: Self.eve, isChange: false) == nil)
        queue.clear()
        #expect(queue.end(of: Self.eve, isChange: false) == nil)
    }
}
