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
            turns = WebsiteConcurrencyLimit(time: time)
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
        let scene = Fixture(time)
        scene.send("flood", 0..<1000)
        #expect(scene.begunSince() == names("flood", 0..<1000))
    }

    @Test func requestsOverTheLimitBeginInOrderWhenOthersEnd() {
        let scene = Fixture(time)
        scene.send("shop", 0..<1)
        scene.send("flood", 0..<100)
        #expect(scene.begunSince() == ["shop 0"] + names("flood", 0..<WebsiteConcurrencyLimit.limit))
        // Another website's request starts at once, however many wait.
        scene.send("shop", 1..<2)
        #expect(scene.begunSince() == ["shop 1"])
        for number in WebsiteConcurrencyLimit.limit..<100 {
            scene.end("flood")
            #expect(scene.begunSince() == ["flood \(number)"])
        }
        scene.end("flood", WebsiteConcurrencyLimit.limit)
        scene.end("shop", 2)
        #expect(scene.turns.websites == 0)
    }

    @Test func requestsThatBeganWithoutLimitCountOnceThereIsOne() {
        let scene = Fixture(time)
        scene.send("flood", 0..<10)
        scene.send("shop", 0..<1)
        _ = scene.begunSince()
        scene.send("flood", 10..<11)
        scene.end("flood", 10 - WebsiteConcurrencyLimit.limit)
        #expect(scene.begunSince().isEmpty)
        scene.end("flood")
        #expect(scene.begunSince() == ["flood 10"])
    }

    @Test func limitEndsWhenNoOtherWebsiteCallsAnyMore() {
        let scene = Fixture(time)
        scene.send("shop", 0..<1)
        scene.send("flood", 0..<20)
        _ = scene.begunSince()
        time.advance(by: WebsiteConcurrencyLimit.memory)
        scene.send("flood", 20..<30)
        // The requests that have waited start, too.
        #expect(Set(scene.begunSince()) == Set(names("flood", WebsiteConcurrencyLimit.limit..<30)))
    }
}
