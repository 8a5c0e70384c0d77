import Glibc
import Synchronization
import TestSupport
import Testing

/// Blocks more tasks than the machine has cores. None continues before the last one has arrived.
@Suite(.timeLimit(.minutes(15))) struct SpareThreadTests {
    private static let count = sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 8

    private final class Meeting: Sendable {
        private let missing = Atomic<Int>(count)
        private let door: Int32
        private let key: Int32

        init() throws {
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            (door, key) = (ends[0], ends[1])
        }

        deinit { close(door) }

        /// Blocks the thread until all tasks have arrived; false if the last one does not.
        func wait() -> Bool {
            if missing.subtract(1, ordering: .sequentiallyConsistent).newValue == 0 { close(key) }
            var opening = pollfd(fd: door, events: Int16(POLLIN), revents: 0)
            return poll(&opening, 1, 120_000) == 1
        }
    }

    @Test func blockingTestsRunOnTheirOwnThread() async throws {
        let meeting = try Meeting()
        let met = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<Self.count { group.addTask { await blocking { meeting.wait() } } }
            return await group.reduce(into: [Bool]()) { $0.append($1) }
        }
        #expect(met == Array(repeating: true, count: Self.count))
    }

    @Test(.mayBlock) func tasksOfABlockingTestRunOnTheirOwnThreads() async throws {
        let meeting = try Meeting()
        let met = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<Self.count { group.addTask { meeting.wait() } }
            return await group.reduce(into: [Bool]()) { $0.append($1) }
        }
        #expect(met == Array(repeating: true, count: Self.count))
    }
}
