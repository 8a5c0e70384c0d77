import Glibc
import Synchronization
import TestSupport
import Testing

/// More tasks that block than the machine has cores; none of them goes on before the last has come.
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

        /// Holds the thread; false if the last does not come.
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
