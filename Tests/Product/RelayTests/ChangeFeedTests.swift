import Domain
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// The change feed: it finds all changes of other processes, in whatever order they become visible.
struct ChangeFeedTests {
    /// A store of changes that are visible once they are committed.
    private final class Changes: ChangeStore {
        private struct State {
            var numbers: Set<Int64> = []
            var isAway = false
            var asked: [String] = []
        }

        private let state = Mutex(State())

        func commit(_ numbers: Int64...) { state.withLock { $0.numbers.formUnion(numbers) } }
        func goAway(_ isAway: Bool) { state.withLock { $0.isAway = isAway } }

        /// The queries since the last read of this property.
        var asked: [String] {
            state.withLock { state in
                defer { state.asked = [] }
                return state.asked
            }
        }

        private func answer<Answer>(
            _ what: String, _ body: (Set<Int64>) -> Answer
        ) throws(StoreFailure) -> Answer {
            let (numbers, isAway) = state.withLock { state in
                state.asked.append(what)
                return (state.numbers, state.isAway)
            }
            if isAway { throw .unavailable("away") }
            return body(numbers)
        }

        func newestChange() async throws(StoreFailure) -> Int64 { try answer("newest") { $0.max() ?? 0 } }

        func changes(after number: Int64, limit: Int) async throws(StoreFailure) -> [StoreChange] {
            try answer("changes") { numbers in
                numbers.filter { $0 > number }.sorted().prefix(limit).map { StoreChange(number: $0, event: "?") }
            }
        }

        func countChanges(after first: Int64, upTo last: Int64) async throws(StoreFailure) -> Int {
            try answer("count") { numbers in numbers.count { $0 > first && $0 <= last } }
        }
    }

    private final class ChangeFeedBench {
        let changes = Changes()
        let feed = ChangeFeed()
        let time = TestTime()

        /// Runs one poll, and returns the new changes.
        func look(isAwaited: Bool = true) async throws(StoreFailure) -> [Int64] {
            var found: [Int64] = []
            try await feed.look(changes, isAwaited: isAwaited, at: time.instant()) { found.append($0.number) }
            time.advance(by: .milliseconds(50))
            return found
        }

        /// Runs the polls of one second, and returns the new changes.
        func second() async throws(StoreFailure) -> [Int64] {
            var found: [Int64] = []
            for _ in 0..<20 { found += try await look() }
            return found
        }
    }

    @Test func eachChangeIsFoundOnce() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(5000)
        _ = try await bench.second()
        bench.changes.commit(5001, 5002)
        #expect(try await bench.look() == [5001, 5002])
        bench.changes.commit(5003)
        #expect(try await bench.look() == [5003])
        for _ in 0..<15 { #expect(try await bench.second() == []) }
    }

    @Test func lateCommitIsFound() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(5000)
        _ = try await bench.second()
        // Found by the next poll.
        bench.changes.commit(5002)
        #expect(try await bench.look() == [5002])
        bench.changes.commit(5001)
        #expect(try await bench.look() == [5001])
        // The transaction of a change was delayed, so it is found many polls later.
        bench.changes.commit(5004, 5005)
        #expect(try await bench.second() == [5004, 5005])
        for _ in 0..<5 { _ = try await bench.second() }
        bench.changes.commit(5003)
        #expect(try await bench.second() == [5003])
        for _ in 0..<15 { #expect(try await bench.second() == []) }
    }

    /// The nodes of a cluster assign ids in steps, each with its own offset.
    @Test func idsOfSeveralNodesAreMerged() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(1, 2, 3)
        _ = try await bench.second()
        var expected: Set<Int64> = []
        var found: [Int64] = []
        for round in Int64(0)..<40 {
            // One node is far ahead, another falls behind, and the third is idle.
            for number in [10 + 3 * round * 4, 11 + 3 * round] {
                bench.changes.commit(number)
                expected.insert(number)
            }
            found += try await bench.look()
        }
        for _ in 0..<3 { found += try await bench.second() }
        #expect(found.count == expected.count && Set(found) == expected)
    }

    @Test func changeBegunBeforeTheFirstReadIsFound() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(8, 10)
        _ = try await bench.look()
        bench.changes.commit(9)
        #expect(try await bench.second().contains(9))
    }

    @Test func changesAreReadInPages() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(5000)
        _ = try await bench.second()
        _ = bench.changes.asked
        for number in Int64(5001)...7500 { bench.changes.commit(number) }
        #expect(try await bench.look() == Array(5001...7500))
        #expect(bench.changes.asked.count { $0 == "changes" } == 3)
    }

    /// Without held requests, the feed only keeps its cursor, once a second. Changes of that time are not read
    /// later.
    @Test func nothingIsReadWithoutHeldRequests() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(5000)
        for number in Int64(0)..<600 {
            bench.changes.commit(5001 + number)
            #expect(try await bench.look(isAwaited: false) == [])
        }
        let asked = bench.changes.asked
        #expect(asked.count == 30 && asked.allSatisfy { $0 == "newest" })
        let found = try await bench.second()
        // Of the thirty seconds, only the changes of the last ones are read, because a new request may have missed
        // them.
        #expect(found.contains(5600) && found.allSatisfy { $0 > 5360 })
        bench.changes.commit(6000)
        #expect(try await bench.look() == [6000])
    }

    @Test func readFailureLosesNoChange() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(5000)
        _ = try await bench.second()
        bench.changes.commit(5001)
        _ = try await bench.look()
        bench.changes.goAway(true)
        bench.changes.commit(5003)
        for _ in 0..<30 {
            await #expect(throws: StoreFailure.self) { try await bench.look() }
        }
        bench.changes.commit(5002)
        bench.changes.goAway(false)
        #expect(try await bench.look() == [5002, 5003])
        #expect(try await bench.second() == [])
    }

    /// A transaction that the store's outage delayed does not count as late: nothing could be polled meanwhile.
    @Test func storeOutageBarelyCountsAgainstLateCommits() async throws {
        let bench = ChangeFeedBench()
        bench.changes.commit(5000)
        _ = try await bench.second()
        bench.changes.commit(5002, 5004)
        #expect(try await bench.second() == [5002, 5004])
        bench.changes.goAway(true)
        for _ in 0..<30 {
            bench.time.advance(by: .seconds(1))
            await #expect(throws: StoreFailure.self) { try await bench.look() }
        }
        bench.changes.goAway(false)
        #expect(try await bench.second() == [])
        bench.changes.commit(5003)
        #expect(try await bench.second() == [5003])
        for _ in 0..<15 { #expect(try await bench.second() == []) }
    }

    /// The cursor keeps no more ids than a few seconds can bring, however many are read.
    @Test func settledIDsAreForgotten() {
        var marks = ChangeCursor()
        var now = Instant(nanoseconds: 1)
        marks.skip(to: 0, at: now)
        for second in Int64(0)..<100 {
            for number in 1...Int64(10) { _ = marks.record(second * 10 + number) }
            now = now + .seconds(1)
            marks.swept(at: now)
        }
        #expect(marks.countOfRead == 100 && marks.settled == 900)
    }
}
