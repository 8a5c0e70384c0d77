import Domain
import Testing

@testable import Relay

/// The requests that run in a relay, and those whose end the store does not know yet.
struct RunningOperationTests {
    private let running = RunningOperations()
    private let repeatable: IdempotentRequest

    init() throws {
        let website = try #require(WebsiteID("00000000000000000000000000000001"))
        repeatable = IdempotentRequest(website: website, route: "r", key: "k", content: [])
    }

    private func id(_ number: Int) throws -> OperationID {
        let high = [UInt8](repeating: 0, count: 8)
        return try #require(OperationID(high + (0..<8).map { (place: Int) in UInt8(number >> (56 - place * 8) & 255) }))
    }

    private func leave(_ number: Int, hadBegun: Bool) throws {
        running.leave([try id(number): repeatable], hadBegun: hadBegun)
    }

    /// Takes the remaining operations, as they are reported to the store.
    private func all() -> [OperationID] {
        var all: [OperationID] = []
        while true {
            let some = running.takeLeft().some
            if some.isEmpty { return all }
            all += some.keys
            running.remove(some)
        }
    }

    @Test func runningOperationIsNotStartedAgain() throws {
        let one = try id(1)
        #expect(running.insert(one))
        #expect(!running.insert(one))
        running.remove(one)
        #expect(running.insert(one))
    }

    @Test func resumedOperationIsNotReleased() throws {
        let one = try id(1)
        for hadBegun in [true, false] {
            try leave(1, hadBegun: hadBegun)
            #expect(running.insert(one))
            #expect(running.takeLeft().some.isEmpty)
            running.remove(one)
        }
    }

    /// Otherwise it would run while it is released as ended.
    @Test func operationCannotBeResumedDuringRelease() throws {
        let one = try id(1)
        for hadBegun in [true, false] {
            try leave(1, hadBegun: hadBegun)
            let reported = running.takeLeft()
            #expect(reported.some == [one: repeatable] && reported.hadBegun == hadBegun)
            #expect(!running.insert(one))
            // The report to the store failed.
            running.leave(reported.some, hadBegun: reported.hadBegun)
            let again = running.takeLeft()
            #expect(again.some == reported.some && again.hadBegun == hadBegun)
            running.remove(again.some)
            #expect(running.insert(one))
            running.remove(one)
        }
    }

    /// Requests that fail to start while the store is down do not displace those that have ended.
    @Test func failedStartsDoNotEvictStartedOperations() throws {
        for number in 1...RunningOperations.most + 1 { try leave(number, hadBegun: false) }
        // Runs that fail meanwhile.
        for _ in 0..<3 {
            let (some, hadBegun) = running.takeLeft()
            #expect(some.count == RunningOperations.page && !hadBegun)
            running.leave(some, hadBegun: hadBegun)
        }
        let ended = try (0..<RunningOperations.page + 5).map { try id(RunningOperations.most + 2 + $0) }
        for operation in ended { running.leave([operation: repeatable], hadBegun: true) }
        let first = running.takeLeft()
        #expect(first.some.count == RunningOperations.page && first.hadBegun)
        running.remove(first.some)
        let left = all()
        #expect(left.count == RunningOperations.most + 5 && Set(left).count == left.count)
        #expect(Set(ended).isSubset(of: Set(left + first.some.keys)))
    }
}
