import EventLoop
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// The limit on one website's requests in work.
struct WebsiteConcurrencyLimitTests {
    private let time = TestTime()

    /// A loop on which requests of websites start, are recorded, and end when the test ends them.
    private final class Fixture: Sendable {
        let loop: EventLoop
        let turns: WebsiteConcurrencyLimit
        private let begun = Mutex<[String]>([])

        init(_ time: TestTime) {
            loop = EventLoop.simulated(name: "requests", time: time) { _ in 0 }
            turns = WebsiteConcurrencyLimit(time: time) { EventLoop.atTurnEnd($0) }
        }

        func send(_ website: String, _ numbers: Range<Int>) {
            loop.asCurrent {
                for number in numbers {
                    loop.spawn {
                        await self.turns.begin(Array(website.utf8))
                        self.begun.withLock { $0.append("\(website) \(number)") }
                    }
                }
            }
            settle()
        }

        func end(_ website: String, _ count: Int = 1) {
            loop.asCurrent { for _ in 0..<count { turns.end(Array(website.utf8)) } }
            settle()
        }

        /// Returns the requests that started since the last call.
        func begunSince() -> [String] {
            begun.withLock { begun in
                defer { begun = [] }
                return begun
            }
        }

        private func settle() { while loop.turn() {} }
    }

    private func names(_ website: String, _ numbers: Range<Int>) -> [String] { numbers.map { "\(website) \($0)" } }

    @Test func websiteThatIsAloneHasNoLimit() {
        let fixture = Fixture(time)
        fixture.send("flood", 0..<1000)
        #expect(fixture.begunSince() == names("flood", 0..<1000))
    }

    @Test func requestsOverTheLimitBeginInOrderWhenOthersEnd() {
        let fixture = Fixture(time)
        fixture.send("shop", 0..<1)
        fixture.send("flood", 0..<100)
        #expect(fixture.begunSince() == ["shop 0"] + names("flood", 0..<WebsiteConcurrencyLimit.limit))
        // Another website's request starts at once, however many wait.
        fixture.send("shop", 1..<2)
        #expect(fixture.begunSince() == ["shop 1"])
        for number in WebsiteConcurrencyLimit.limit..<100 {
            fixture.end("flood")
            #expect(fixture.begunSince() == ["flood \(number)"])
        }
        fixture.end("flood", WebsiteConcurrencyLimit.limit)
        fixture.end("shop", 2)
        #expect(fixture.turns.websites == 0)
    }

    /// Reads of a file run on the loop, so such a request ends before the next one begins.
    @Test func requestsThatEndAtOnceShareTheTurns() {
        let ends = Mutex<[@Sendable () -> Void]>([])
        let turns = WebsiteConcurrencyLimit(time: time) { end in ends.withLock { $0.append(end) } }
        let loop = EventLoop.simulated(name: "requests", time: time) { _ in 0 }
        let served = Mutex<[String]>([])
        func send(_ website: String, _ count: Int) {
            loop.asCurrent {
                for _ in 0..<count {
                    loop.spawn {
                        await turns.begin(Array(website.utf8))
                        served.withLock { $0.append(website) }
                        turns.end(Array(website.utf8))
                    }
                }
            }
            while loop.turn() {}
        }
        send("shop", 1)
        var left = 10
        send("flood", left)
        while left > 0 {
            let now = min(left, WebsiteConcurrencyLimit.limit)
            #expect(served.withLock { $0.count { $0 == "flood" } } == 10 - left + now)
            left -= now
            send("shop", 1)
            #expect(served.withLock { $0.last } == "shop")
            for end in ends.withLock({ ends in
                defer { ends = [] }
                return ends
            }) { loop.asCurrent(end) }
            while loop.turn() {}
        }
        #expect(turns.websites == 0)
    }

    @Test func requestsThatBeganWithoutLimitCountOnceThereIsOne() {
        let fixture = Fixture(time)
        fixture.send("flood", 0..<10)
        fixture.send("shop", 0..<1)
        _ = fixture.begunSince()
        fixture.send("flood", 10..<11)
        fixture.end("flood", 10 - WebsiteConcurrencyLimit.limit)
        #expect(fixture.begunSince().isEmpty)
        fixture.end("flood")
        #expect(fixture.begunSince() == ["flood 10"])
    }

    @Test func limitEndsWhenNoOtherWebsiteCallsAnyMore() {
        let fixture = Fixture(time)
        fixture.send("shop", 0..<1)
        fixture.send("flood", 0..<20)
        _ = fixture.begunSince()
        time.advance(by: WebsiteConcurrencyLimit.memory)
        fixture.send("flood", 20..<30)
        // The requests that have waited start, too.
        #expect(Set(fixture.begunSince()) == Set(names("flood", WebsiteConcurrencyLimit.limit..<30)))
    }
}
